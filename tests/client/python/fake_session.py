"""What the fake server keeps of a sequence, and how it judges a proposal.

A proposal made when the session had L rows holds tokens for positions L+1 .. and is judged once, by
the next call that brings tokens for these positions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from aerie_draft._proto import draft_pb2


@dataclasses.dataclass
class Session:
    width: int
    dtype: int
    start: int = 0  # the first row; tokens and rows are of it and those behind it
    fused: bool = False
    evicted: bool = False
    options: draft_pb2.SessionOptions | None = None
    tokens: list[int] = dataclasses.field(default_factory=list)
    rows: list[bytes] = dataclasses.field(default_factory=list)
    # Rows when it was made, tokens and parents.
    proposed: tuple[int, list[int], list[int]] | None = None
    seq: int = 0
    stored: draft_pb2.DraftResponse | None = None
    record: draft_pb2.AcceptanceRecord = dataclasses.field(
        default_factory=draft_pb2.AcceptanceRecord
    )

    @property
    def length(self) -> int:
        return self.start + len(self.tokens)

    def array(self) -> np.ndarray:
        """Rows as [rows, width] of float32 (from bf16 words)."""
        words = np.frombuffer(b"".join(self.rows), "<u2").reshape(-1, self.width)
        return (words.astype(np.uint32) << np.uint32(16)).view(np.float32)


def judge(session: Session, tokens: Sequence[int]) -> int | None:
    """Of the session's last proposal, once tokens for its positions are there."""
    if session.proposed is None or len(tokens) <= session.proposed[0]:
        return None
    at, proposed, parents = session.proposed
    session.proposed = None
    node = accepted = 0
    for child, (token, parent) in enumerate(zip(proposed, parents), 1):
        if at + accepted < len(tokens) and parent == node and token == tokens[at + accepted]:
            node, accepted = child, accepted + 1
    record = session.record
    record.num_spec_steps += 1
    record.num_draft_tokens += len(proposed)
    record.num_accepted_draft_tokens += accepted
    histogram = record.acceptance_histogram
    histogram.extend([0] * (accepted + 1 - len(histogram)))
    histogram[accepted] += 1
    return accepted


def as_tree(chain: Sequence[int], k: int) -> tuple[list[int], list[int]]:
    """Tokens and parents of at most k nodes: at each level a wrong token, then the chain's own."""
    tokens: list[int] = []
    parents: list[int] = []
    for level, token in enumerate(chain[: k // 2]):
        tokens += [token + 1 if token == 0 else token - 1, token]
        parents += [2 * level, 2 * level]
    return tokens, parents
