"""Where a text ends."""

import pytest
from aerie_draft.stopping import cut


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
