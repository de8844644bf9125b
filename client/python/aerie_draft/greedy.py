"""Greedy verification of a chain: what the target keeps, where the text ends. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from aerie_draft.values import common_prefix


def verify_chain(draft: Sequence[int], choices: Sequence[int]) -> tuple[int, list[int]]:
    """How many draft tokens the target keeps, and the tokens of the round: those and the bonus.

    `choices[i]` is the target's own next token after the last committed token and draft[:i]; there
    is one more of them than of draft tokens.
    """
    if len(choices) != len(draft) + 1:
        raise ValueError(
            f"{len(choices)} choices of the target for {len(draft)} draft tokens; expected "
            f"{len(draft) + 1}; verify with one forward over the last token and all draft tokens"
        )
    accepted = common_prefix(draft, choices)
    return accepted, [*draft[:accepted], choices[accepted]]


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
