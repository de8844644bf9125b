"""What rows tell without the target: one history has one row, and a state carries its own token.

Rows are compared capture by capture, since the later ones are so much larger that they would hide
the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from aerie_draft._proto import draft_pb2
from aerie_draft.conformance.strict_session import StrictSession
from aerie_draft.dtypes import DType, bf16_to_float, fp8_rows_to_float

# A history is named by at least so many tokens: position 0, which is never sent, differs between
# sequences, and so do the first rows.
_LEAST_HISTORY = 4
# Of the pairing: rows that are looked at, and what makes a verdict (docs/wiring-guard.md).
_MOST_ROWS = 400
_LEAST_PAIRS = 8
_APART = 0.6
_NEARER = 0.75


def decode(data: bytes, dtype: int, width: int) -> np.ndarray:
    """[rows, width] float32 of the wire's bytes."""
    kind = DType(dtype)
    words = np.frombuffer(data, kind.storage).reshape(-1, kind.encoded_width(width))
    if kind is DType.FLOAT8_E4M3FN:
        return fp8_rows_to_float(words)
    return bf16_to_float(words) if kind is DType.BFLOAT16 else words.astype(np.float32)


def decode_rows(request: draft_pb2.DraftRequest, session: StrictSession) -> np.ndarray:
    """Those of a call whose byte count is right."""
    manifest = session.manifest
    width = len(manifest.captures) * manifest.hidden_size
    return decode(request.hidden_states.data, manifest.dtype, width)


class RowBook:
    """The first row that was seen of each history. Not thread-safe."""

    def __init__(self, captures: int, tolerance: float):
        self._captures = captures
        self._tolerance = tolerance
        self._rows: dict[int, np.ndarray] = {}

    def compare(self, tokens: Sequence[int], first: int, rows: np.ndarray) -> list[float | None]:
        """Of rows `first` .. of the sequence with `tokens` (all, from row 0) the largest relative
        difference of a capture to what was seen before; None for what is new, and is kept."""
        key = 0
        keys = []
        for row in range(first + len(rows)):
            keys.append(hash((key, tuple(tokens[row:_LEAST_HISTORY]))))
            key = hash((key, tokens[row]))
        return [self._compare(keys[first + i], row) for i, row in enumerate(rows)]

    def differs(self, difference: float) -> bool:
        return not difference <= self._tolerance

    def _compare(self, key: int, row: np.ndarray) -> float | None:
        known = self._rows.setdefault(key, row)
        if known is row:
            return None
        ours, theirs = (v.reshape(self._captures, -1).astype(np.float64) for v in (known, row))
        size = np.maximum(np.linalg.norm(ours, axis=1), np.linalg.norm(theirs, axis=1))
        apart = np.linalg.norm(ours - theirs, axis=1)
        return float(np.max(apart / np.maximum(size, 1e-20)))


class Pairing:
    """Mean distance of rows whose states would be of one token under three readings, over that of
    any two rows: whichever reading makes rows alike tells which token the states belong to."""

    READINGS = {
        "right": 1,  # the state's own token is the one in front of the row's
        "behind": 0,  # the row came with its state's own token
        "ahead": 2,  # with the token after the next
    }

    def __init__(self):
        self._sums = dict.fromkeys(self.READINGS, 0.0)
        self.pairs = dict.fromkeys(self.READINGS, 0)
        self._any, self._any_pairs = 0.0, 0

    def add(self, tokens: Sequence[int], states: np.ndarray) -> None:
        """`states`: [rows, hidden] of the lowest capture; `tokens` came with them."""
        # Targets park huge values at the first positions.
        first = 4 if len(tokens) > 12 else 2
        rows = np.asarray(states[first : first + _MOST_ROWS], np.float64)
        names = np.asarray(tokens[first - 2 : first + len(rows)], np.int64)
        if len(rows) < 4:
            return
        rows = rows - rows.mean(axis=0)
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-20)
        apart = 1.0 - rows @ rows.T
        upper = np.triu(np.ones(apart.shape, bool), 1)
        equal = {}
        for reading, back in self.READINGS.items():
            named = names[2 - back : 2 - back + len(rows)]
            equal[reading] = (named[:, None] == named[None, :]) & upper
        several = sum(mask.astype(np.int64) for mask in equal.values())
        for reading, mask in equal.items():
            # Repeated phrases are equal under every reading and tell nothing.
            alone = mask & (several == 1)
            self._sums[reading] += float(apart[alone].sum())
            self.pairs[reading] += int(alone.sum())
        self._any += float(apart[upper].sum())
        self._any_pairs += int(upper.sum())

    def ratio(self, reading: str) -> float:
        if not self.pairs[reading] or not self._any > 0.0:
            return float("nan")
        return (self._sums[reading] / self.pairs[reading]) / (self._any / self._any_pairs)

    def verdict(self) -> str | None:
        """ "right", "behind" or "ahead"; None when rows do not tell."""
        if self.pairs["right"] < _LEAST_PAIRS:
            return None
        right = self.ratio("right")
        for other in ("behind", "ahead"):
            enough = self.pairs[other] >= _LEAST_PAIRS
            if enough and right >= _APART and self.ratio(other) <= _NEARER * right:
                return other
        return "right" if right < _APART else None

    def numbers(self) -> str:
        return ", ".join(
            f"{reading} {self.ratio(reading):.2f} of {self.pairs[reading]} pairs"
            for reading in self.READINGS
        )
