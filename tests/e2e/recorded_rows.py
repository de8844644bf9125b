"""Rows of a real target that were recorded once, as messages bring them."""

import json

import torch
from safetensors import safe_open

from server_process import ROOT


class Recording:
    """The recorded rows of the demo head's evaluation: 12 sequences of a real target."""

    def __init__(self):
        folder = ROOT / "tests/golden/eval"
        self.facts = json.loads((folder / "recording.json").read_text())
        self.sequences = []
        with safe_open(str(folder / "recording.safetensors"), framework="pt") as file:
            for number, fact in enumerate(self.facts["sequences"]):
                tokens = file.get_tensor(f"{number}.tokens").tolist()
                aux = file.get_tensor(f"{number}.aux")
                self.sequences.append(Sequence(tokens, aux, fact))


class Sequence:
    def __init__(self, tokens, aux, fact):
        self.tokens = tokens
        self.fact = fact
        self.row_bytes = aux.shape[1] * 2
        self.aux = bytes(aux.contiguous().view(dtype=torch.uint8).numpy().tobytes())

    def rows(self, pb, first, end):
        """Rows [first, end): state of position i with the token that follows it."""
        states = pb.HiddenStates(dtype=pb.DATA_TYPE_BFLOAT16,
                                 data=self.aux[first * self.row_bytes:end * self.row_bytes])
        return dict(base_length=first, token_ids=self.tokens[first + 1:end + 1], hidden_states=states)
