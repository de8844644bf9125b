"""What the target keeps of a chain, and where a text ends."""

import pytest
from aerie_draft.greedy import cut, verify_chain


@pytest.mark.parametrize(
    "draft, choices, accepted, tokens",
    [
        ([], [5], 0, [5]),
        ([1, 2], [1, 2, 3], 2, [1, 2, 3]),
        ([1, 2], [1, 9, 3], 1, [1, 9]),
        ([1, 2], [8, 2, 3], 0, [8]),
    ],
    ids=["no_draft", "all_kept", "first_kept", "right_token_behind_a_wrong_one_is_not_kept"],
)
def test_verify_chain(draft, choices, accepted, tokens):
    assert verify_chain(draft, choices) == (accepted, tokens)


def test_verify_chain_wants_one_choice_more_than_draft_tokens():
    with pytest.raises(ValueError, match="2 choices"):
        verify_chain([1, 2], [1, 2])


@pytest.mark.parametrize(
    "tokens, room, kept, ended",
    [
        ([1, 2], 5, [1, 2], False),
        ([1, 0, 2], 5, [1, 0], True),
        ([1, 2, 3], 2, [1, 2], True),
        ([1, 2], 2, [1, 2], True),
        ([1, 2, 0], 2, [1, 2], True),
    ],
    ids=[
        "room_left",
        "all_behind_the_end_is_dropped",
        "room_cuts",
        "room_is_used_up",
        "room_ends_before_the_end_token",
    ],
)
def test_cut(tokens, room, kept, ended):
    assert cut(tokens, {0}, room) == (kept, ended)
