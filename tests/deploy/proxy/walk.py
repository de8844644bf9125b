"""Targets that are played back: what such a target keeps of a draft is what was recorded of it.

So each session's rounds depend on its drafts alone, and a run can be replayed against one server, round by round, to
see which drafts were wrong.
"""

import dataclasses
import json
import threading
import time

import numpy as np
from aerie_draft import Availability, DraftedSequence, DType, Manifest, Proposal, captures_at

from draft_server import ROOT

K = 3
# Tokens behind the prompt: 72 are about 45 rounds.
CONTINUATION = 72
# A target takes its time for a round without a draft, and a walk takes none. So that it does not run through its text
# while a server drains, it asks again from then on and counts no round.
MOST_LOST_IN_A_ROW = 5
# Of log-probabilities: rows sent at once are computed in other batches than rows sent one by one. Those of another
# sequence differ by whole units.
TOLERANCE = 2e-3


def read_recording():
    """[(tokens, rows, prompt tokens)] of the demo head's evaluation, each cut short; rows as bf16 words."""
    folder = ROOT / "tests/golden/eval"
    facts = json.loads((folder / "recording.json").read_text())["sequences"]
    data = (folder / "recording.safetensors").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])

    def tensor(name, dtype):
        begin, end = header[name]["data_offsets"]
        return np.frombuffer(data[start + begin:start + end], dtype).reshape(header[name]["shape"])

    kinds = {"I64": np.int64, "I32": np.int32, "BF16": np.uint16}
    recorded = []
    for number, fact in enumerate(facts):
        prompt = fact["prompt_tokens"]
        tokens, rows = (tensor(f"{number}.{name}", kinds[header[f"{number}.{name}"]["dtype"]])
                        for name in ("tokens", "aux"))
        recorded.append((tokens[:prompt + CONTINUATION].tolist(), rows, prompt))
    return recorded


MANIFEST = Manifest("SmolLM2-135M-Instruct", num_layers=30, hidden_size=576, vocab_size=49152,
                    captures=captures_at([2, 15, 27]), dtype=DType.BFLOAT16)


@dataclasses.dataclass
class Round:
    end: int  # rows committed before it drafted
    proposal: Proposal | None  # None: it was lost


class Walk:
    """One session. One thread at a time."""

    def __init__(self, client, recorded, timeout):
        self.tokens, self.rows, prompt = recorded
        self.sequence = DraftedSequence(
            client, MANIFEST, Availability(first_wait=0, longest_wait=0), timeout=timeout)
        self.rounds = []
        self.recovered_at = None  # when the draft after the last resync came
        self._known, self._sent, self._lost = prompt + 1, 0, 0

    @property
    def over(self):
        return self._known >= len(self.tokens)

    def round(self):
        end = self._known - 1
        self.sequence.commit(self.tokens[self._sent + 1:end + 1], self.rows[self._sent:end])
        self._sent = end
        resyncs = self.sequence.resyncs
        proposal = self.sequence.propose(K)
        if proposal is not None and (self.sequence.resyncs > resyncs or self._lost):
            self.recovered_at = time.monotonic()
        self._lost = self._lost + 1 if proposal is None else 0
        if self._lost > MOST_LOST_IN_A_ROW:
            return
        self.rounds.append(Round(end, proposal))
        kept = 0
        if proposal is not None:
            truth = self.tokens[self._known:self._known + K]
            while kept < min(len(truth), len(proposal.tokens)) and proposal.tokens[kept] == truth[kept]:
                kept += 1
        self._known += kept + 1

    @property
    def lost_rounds(self):
        return sum(made.proposal is None for made in self.rounds)

    def wrong_drafts(self, client):
        """Drafts that one server, asked directly and without any trouble, would not have made."""
        session = client.open_session(MANIFEST)
        wrong, sent = [], 0
        for number, made in enumerate(self.rounds):
            right = session.draft(sent, self.tokens[sent + 1:made.end + 1], self.rows[sent:made.end], K)
            sent = made.end
            if made.proposal is not None and not same(made.proposal, right):
                wrong.append((number, made.proposal.tokens, right.tokens))
        session.close()
        return wrong


def same(made, right):
    """Whether `made` is the draft `right`. Where the drafter found two tokens equally likely, rounding may choose, and what
    follows differs. One that a proxy cut short is asked for again, and answered with as much of it as there was."""
    cut = made.no_draft_reason == "DEADLINE" and len(made.tokens) < len(right.tokens)
    if len(made.tokens) != len(right.tokens) and not cut:
        return False
    for i, (one, other) in enumerate(zip(made.tokens, right.tokens)):
        if not abs(made.log_probs[i] - right.log_probs[i]) <= TOLERANCE:
            return False
        if one != other:
            return True
    return True


class Load:
    """Walks on threads, a few on each in turn. `pause_at` rounds of a walk, its thread waits until resume()."""

    def __init__(self, walks, threads, pause_at):
        self._walks, self._pause_at = walks, pause_at
        self._changed = threading.Condition()
        self._resumed = threading.Event()
        self._failures = []
        self._threads = [threading.Thread(target=self._run, args=(walks[i::threads],)) for i in range(threads)]
        for thread in self._threads:
            thread.start()

    def wait_for_rounds(self, count, patience):
        """Until every walk has made so many."""
        with self._changed:
            done = self._changed.wait_for(
                lambda: self._failures or all(len(walk.rounds) >= count for walk in self._walks), patience)
        assert done and not self._failures, self._failures

    def resume(self):
        self._resumed.set()

    def join(self, patience):
        for thread in self._threads:
            thread.join(patience)
            assert not thread.is_alive(), "a walk does not come to its end"
        assert not self._failures, self._failures

    def _run(self, walks):
        try:
            while any(not walk.over for walk in walks):
                for walk in walks:
                    if walk.over:
                        continue
                    if len(walk.rounds) == self._pause_at:
                        self._resumed.wait()
                    walk.round()
                    with self._changed:
                        self._changed.notify_all()
        except Exception as failure:  # The test shows it.
            with self._changed:
                self._failures.append(failure)
                self._changed.notify_all()
