"""Where a text ends, whatever it was drafted with. A pure function."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def cut(tokens: Sequence[int], eos_ids: Collection[int], room: int) -> tuple[list[int], bool]:
    """The tokens that plain decoding would also have made, and whether the text ends with them.

    An end-of-sequence token is kept and all behind it dropped; so is all that exceeds `room`.
    """
    kept: list[int] = []
    for token in tokens[:room]:
        kept.append(token)
        if token in eos_ids:
            return kept, True
    return kept, len(kept) >= room
