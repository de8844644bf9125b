"""Sequences of a strict worker: made-up rows of the right width, and comparing what comes of them.

Rows need no meaning: a drafter drafts something from any finite rows, and what it drafts from equal
rows has to be equal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aerie_draft._proto import draft_pb2
from aerie_draft.conformance.probe import Broken, Probe, Refused
from aerie_draft.dtypes import encode_rows

# Between proposals from equal rows: passes of other shapes sum up in another order, and a bf16
# server keeps 8 bits. A wrong row moves log-probabilities by far more.
_SAME_LOG_PROB = 0.1
_TIE = 0.05


class Sample:
    """A made-up sequence: tokens and rows that depend on the seed and the place alone."""

    def __init__(self, probe: Probe, seed: int):
        self._seed, self._vocab = seed, probe.drafter.vocab_size
        self._width, self._dtype = probe.width, probe.dtype

    def tokens(self, first: int, end: int) -> list[int]:
        return [
            (104729 * (i + 1) * (self._seed + 3) + i * i) % self._vocab for i in range(first, end)
        ]

    def rows(self, first: int, end: int) -> bytes:
        made = [
            np.random.default_rng((self._seed, i)).standard_normal(self._width)
            for i in range(first, end)
        ]
        if not made:
            return b""
        return encode_rows(np.stack(made).astype(np.float32), self._dtype).tobytes()


class Line:
    """A session that grows by made-up rows; remembers what it sent, to be sent to another one."""

    def __init__(self, probe: Probe, seed: int, **fields):
        self.probe, self.sample = probe, Sample(probe, seed)
        opened = probe.open(**fields)
        self.id, self.length, self.start = opened.session_id, opened.length, opened.length
        self.options = opened.options
        self.tokens: list[int] = []
        self.rows = b""
        self.seq = 0

    def advance(self, count: int, k: int, tokens: Sequence[int] | None = None):
        """`count` more rows; `tokens` in place of the sample's own."""
        first = self.length
        new = list(self.sample.tokens(first, first + count) if tokens is None else tokens)
        rows = self.sample.rows(first, first + len(new))
        self.seq += 1
        tokens, held = self.tokens + new, self.rows + rows
        try:
            answer = self.probe.draft(self.id, first, new, rows, k, self.seq)
        except Refused as refused:
            # Others may need the room: as any worker, send again from the row that is named.
            if refused.reason != "EVICTED" or not refused.detail.HasField("resend_from"):
                raise
            at = refused.detail.resend_from - self.start
            data = held[at * self.probe.width * self.probe.dtype.size :]
            answer = self.probe.draft(self.id, self.start + at, tokens[at:], data, k, self.seq)
        self.tokens, self.rows = tokens, held
        self.length = first + len(new)
        if answer.length != self.length:
            raise Broken(
                f"length {answer.length} after {self.length} rows",
                str(self.length),
                "tell the rows that the session holds after the call",
            )
        return answer

    def fresh(self, k: int, **fields):
        """The proposal of a new session that gets all of this one's rows in one call."""
        other = self.probe.open(**fields)
        answer = self.probe.draft(other.session_id, self.start, self.tokens, self.rows, k)
        self.probe.end(other.session_id)
        return answer

    def close(self, final_tokens: Sequence[int] = ()):
        return self.probe.end(self.id, final_tokens)


def difference(a: draft_pb2.DraftResponse, b: draft_pb2.DraftResponse) -> str:
    """How the proposals differ beyond rounding; empty when they do not."""
    ours, theirs = a.tree, b.tree
    if len(ours.token_ids) != len(theirs.token_ids):
        return f"{len(ours.token_ids)} tokens and {len(theirs.token_ids)}"
    for i, pair in enumerate(zip(ours.token_ids, theirs.token_ids)):
        apart = abs(ours.log_probs[i] - theirs.log_probs[i])
        if pair[0] != pair[1] or ours.parents[i] != theirs.parents[i]:
            # Of two tokens that are as good as equally likely rounding may take either.
            if apart <= _TIE:
                return ""
            return f"token {i + 1} is {pair[0]} and {pair[1]}"
        if not apart <= _SAME_LOG_PROB:
            return (
                f"log-probability {i + 1} is {ours.log_probs[i]:.3f} and {theirs.log_probs[i]:.3f}"
            )
    return ""


def expect_same(a, b, what: str, remedy: str) -> None:
    apart = difference(a, b)
    if apart:
        raise Broken(f"{what}: {apart}", "the same proposal from the same rows", remedy)
