"""Recorded continuations of a real target as an endless load: honest rows, or rows whose captures are swapped."""

import json

import numpy as np
import torch
from safetensors import safe_open

import deploy_files
from load import MANIFEST

K = 3


class Replay:
    """Plays recorded sequences through drafts of K tokens, one round at a time."""

    def __init__(self, client):
        self.client = client
        folder = deploy_files.ROOT / "tests/golden/eval"
        facts = json.loads((folder / "recording.json").read_text())["sequences"]
        with safe_open(str(folder / "recording.safetensors"), framework="pt") as file:
            self.sequences = [(file.get_tensor(f"{number}.tokens").tolist(),
                               file.get_tensor(f"{number}.aux").view(torch.uint16).numpy(), fact["prompt_tokens"])
                              for number, fact in enumerate(facts)]

    def rounds(self, swapped=False, says_more=0):
        """A generator that makes a round each time, for ever. `swapped`: last capture first. `says_more`: what the
        worker adds to its count of accepted tokens when it reports it."""
        while True:
            for tokens, aux, prompt in self.sequences:
                rows = aux.reshape(len(aux), len(MANIFEST.captures), MANIFEST.hidden_size)
                rows = np.ascontiguousarray(rows[:, ::-1] if swapped else rows).reshape(aux.shape)
                yield from self._sequence(tokens, rows, prompt, says_more)

    def _sequence(self, tokens, rows, prompt, says_more):
        session = self.client.open_session(MANIFEST)
        sent, known, accepted = 0, prompt + 1, None
        while known < len(tokens):
            says = None if accepted is None else accepted + says_more
            proposal = session.draft(sent, tokens[sent + 1:known], rows[sent:known - 1].tobytes(), K, accepted=says)
            yield
            accepted = proposal.accepted_by(tokens[known:])
            sent, known = known - 1, known + accepted + 1
        session.close(tokens[sent + 1:])
