"""What rows tell by themselves: that one history has one row, and whose token a state carries."""

import numpy as np
import pytest
from aerie_draft.conformance.row_checks import Pairing, RowBook

TOKENS = np.random.default_rng(3).integers(0, 12, 90).tolist()
EMBEDDING = np.random.default_rng(4).standard_normal((12, 24))


def states(shift):
    """Of rows 0 .. : each resembles the token that is `shift` places in front of the row's."""
    noise = np.random.default_rng(5).standard_normal((len(TOKENS), 24))
    names = [TOKENS[max(i - shift, 0)] for i in range(len(TOKENS))]
    return EMBEDDING[names] + 0.3 * noise


@pytest.mark.parametrize(
    "shift, verdict", [(1, "right"), (0, "behind"), (2, "ahead")], ids=["right", "behind", "ahead"]
)
def test_rows_tell_which_token_their_states_are_of(shift, verdict):
    pairing = Pairing()
    pairing.add(TOKENS, states(shift))
    assert pairing.verdict() == verdict, pairing.numbers()


@pytest.mark.parametrize(
    "tokens, rows",
    [
        ([], np.empty((0, 24))),
        (TOKENS[:8], states(0)[:8]),
        (list(range(90)), states(0)),
        (TOKENS, np.random.default_rng(6).standard_normal((90, 24))),
        (TOKENS, np.full((90, 24), np.nan)),
        (TOKENS, np.zeros((90, 24))),
    ],
    ids=["none", "too few", "no token twice", "noise", "not a number", "all alike"],
)
def test_rows_that_do_not_tell_are_not_judged(tokens, rows):
    pairing = Pairing()
    pairing.add(tokens, rows)
    assert pairing.verdict() is None, pairing.numbers()


def test_one_history_has_one_row_and_another_history_another():
    book = RowBook(captures=2, tolerance=0.05)
    rows = np.random.default_rng(7).standard_normal((6, 8)).astype(np.float32)
    rows[:, 4:] *= 1000.0
    assert book.compare(TOKENS, 0, rows) == [None] * 6
    assert not any(book.differs(d) for d in book.compare(TOKENS, 2, rows[2:] * 1.01))
    other = [*TOKENS[:4], 99, *TOKENS[5:]]
    # Row 5 is the first behind another token: row 4 came with it, and its state does not know it.
    found = book.compare(other, 4, rows[[4, 3]])
    assert found[0] is not None and not book.differs(found[0])
    assert found[1] is None


@pytest.mark.parametrize("column", [0, 4], ids=["small capture", "large capture"])
@pytest.mark.parametrize("value", [2.0, float("nan")])
def test_a_row_that_differs_in_one_capture_differs(column, value):
    book = RowBook(captures=2, tolerance=0.05)
    row = np.concatenate([np.ones((1, 4)), np.full((1, 4), 1000.0)], axis=1).astype(np.float32)
    book.compare(TOKENS[:5], 4, row)
    changed = row.copy()
    changed[0, column] *= value
    (difference,) = book.compare(TOKENS[:5], 4, changed)
    assert book.differs(difference)
