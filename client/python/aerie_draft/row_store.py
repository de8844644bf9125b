"""The rows of a sequence that its worker still holds: a window that ends at the newest one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class RowStore:
    """Rows `first` .. `end` - 1, with of each the token that follows its state. Encoded rows come
    in pieces and stay in them: nearly always the newest piece alone is asked for."""

    def __init__(self, first: int, width: int, dtype):
        self.first = first
        self.tokens: list[int] = []
        self._pieces: list[np.ndarray] = []
        self._width = width
        self._dtype = dtype

    @property
    def end(self) -> int:
        return self.first + len(self.tokens)

    def append(self, tokens: Sequence[int], rows: np.ndarray) -> None:
        self.tokens.extend(int(token) for token in tokens)
        self._pieces.append(rows)

    def tokens_from(self, first: int) -> list[int]:
        return self.tokens[first - self.first :]

    def rows_from(self, first: int) -> np.ndarray:
        pieces, missing = [], self.end - first
        for piece in reversed(self._pieces):
            if missing <= 0:
                break
            pieces.append(piece[max(0, len(piece) - missing) :])
            missing -= len(pieces[-1])
        if not pieces:
            return np.empty((0, self._width), self._dtype)
        return np.concatenate(pieces[::-1])

    def let_go_before(self, first: int) -> None:
        """Forgets rows before `first`, but cuts a piece only once half of it is to go: what stays of
        it is copied."""
        while self._pieces and self.first < first:
            piece = self._pieces[0]
            cut = min(first - self.first, len(piece))
            if cut == len(piece):
                self._pieces.pop(0)
            elif cut >= len(piece) - cut:
                self._pieces[0] = piece[cut:].copy()  # A view would keep all of it alive.
            else:
                return
            del self.tokens[:cut]
            self.first += cut
