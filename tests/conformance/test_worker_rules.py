"""Every rule for workers: kept by a right worker, and found broken in a worker that breaks it."""

import pytest
from aerie_draft.conformance.rules import WORKER_RULES
from aerie_draft.conformance.scenarios import scenarios_for
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
