"""The texts that the worker under test decodes: learned without drafts, then used to plan drafts.

A text here is a list of the tokens at positions 1 and up: position 0 is never sent. A strict server
that knows the text knows which drafts are right, so it can say in advance how many tokens of a
proposal a worker has to keep.
"""

from __future__ import annotations

from collections.abc import Sequence

from aerie_draft.values import common_prefix


class Texts:
    """Not thread-safe: the strict server's lock guards it."""

    def __init__(self, given: Sequence[Sequence[int]] = ()):
        """`given`: whole token sequences that are known beforehand, with their position 0."""
        self.given = bool(given)
        self._texts: list[list[int]] = [list(text[1:]) for text in given]

    def __len__(self) -> int:
        return len(self._texts)

    def learn(self, tokens: Sequence[int]) -> None:
        """Adds a text, or the rest of one that is known in part."""
        tokens = list(tokens)
        for number, text in enumerate(self._texts):
            shared = common_prefix(text, tokens)
            if shared == len(tokens):
                return
            if shared == len(text):
                self._texts[number] = tokens
                return
        self._texts.append(tokens)

    def all(self) -> list[list[int]]:
        return self._texts

    def nearest(self, tokens: Sequence[int], start: int = 0) -> tuple[list[int], int]:
        """The text that agrees longest with `tokens`, which begin at row `start`, and how long."""
        best: tuple[list[int], int] = ([], 0)
        for text in self._texts:
            shared = common_prefix(text[start:], tokens)
            if shared > best[1] or not best[0]:
                best = (text, shared)
        return best

    def continuation(self, tokens: Sequence[int], start: int = 0) -> list[int]:
        """What follows `tokens` in the text that begins with all of them; empty when none does."""
        text, shared = self.nearest(tokens, start)
        return text[start + shared :] if shared == len(tokens) else []
