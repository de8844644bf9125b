"""Every rule for workers: kept by a right worker, and found broken in a worker that breaks it."""

import pytest
from aerie_draft.conformance.rules import WORKER_RULES
from aerie_draft.conformance.scenarios import scenarios_for
from aerie_draft.conformance.text_checks import _moved
from bugs import BUGS, ON_STREAM
from conftest import check, run_raw

# On a stream a lost answer takes its session with it.
UNARY_ONLY = {"W-SEQ-RETRY"}
# Of bugs that are waited for in vain, seconds; a right worker may take the usual time.
WAITS = {
    "no_deadline": {"patience": 1.0},
    "never_closes": {"settle": 0.1},
    "never_asks_again": {"comeback": 0.0},
}


@pytest.mark.parametrize("stream", [False, True], ids=["unary", "stream"])
def test_a_right_worker_keeps_every_rule(stream):
    report = check(run_raw(stream=stream))
    assert not report.failed(), report.text()
    assert report.skipped() <= UNARY_ONLY, report.text()


@pytest.mark.parametrize("bug", BUGS)
def test_a_wrong_worker_is_found(bug):
    must, may = BUGS[bug]
    scenarios = frozenset(scenario.name for scenario in scenarios_for(must))
    report = check(
        run_raw(bug, stream=bug in ON_STREAM),
        scenarios=scenarios,
        **WAITS.get(bug, {}),
    )
    assert must <= report.failed(), report.text()
    assert report.failed() <= must | may, report.text()


def test_every_rule_has_a_worker_that_breaks_it():
    assert set().union(*(must for must, _ in BUGS.values())) == set(WORKER_RULES)


def test_pairing_is_judged_exactly_where_the_text_is_known(whole_text):
    # Too short for the states to tell.
    run = run_raw("row_with_its_own_token", tokens=4)
    report = check(run, scenarios=frozenset({"plain"}), texts=(whole_text,))
    assert report.failed() == {"W-PAIRING"}, report.text()
    assert "that of position 0" in report.text()


@pytest.mark.parametrize(
    "place, new, moved",
    [
        (2, [12, 13, 14], "behind"),
        (2, [14, 15, 16], "ahead"),
        (2, [13, 14, 99], ""),
        (2, [14], ""),  # one token may be a coincidence
        (6, [98, 99], ""),  # nothing of the text is left to compare with
        (0, [10, 11], ""),
    ],
)
def test_tokens_that_are_one_place_off_are_told_from_other_tokens(place, new, moved):
    assert _moved([11, 12, 13, 14, 15, 16, 17], place, new) == moved
