"""Runs of the test workers against the strict server, in this process."""

import traceback

import fake_target
import pytest
import raw_worker
from aerie_draft import captures_at
from aerie_draft.conformance.shape import DrafterShape
from aerie_draft.conformance.worker_suite import WorkerRun, WorkerSettings, check_worker

SHAPE = DrafterShape(
    fake_target.LAYERS, fake_target.HIDDEN, fake_target.VOCAB, captures_at(fake_target.BOUNDARIES)
)


def run_raw(bug="", stream=False, tokens=60, **worker):
    """A `run` for check_worker: one text of the raw worker."""

    def run(address, scenario):
        decoding = raw_worker.Worker(address, bug, stream, **worker)
        try:
            return WorkerRun(0, str(decoding.generate(tokens)))
        except (Exception, SystemExit):
            return WorkerRun(1, trouble=traceback.format_exc(limit=2))
        finally:
            decoding.close()

    return run


def check(run, shape=SHAPE, rules=None, **settings):
    settings = {"same_output": True, **settings}
    if rules is not None:
        settings["rules"] = frozenset(rules)
    return check_worker(run, shape, WorkerSettings(**settings), subject="test")


@pytest.fixture(scope="session")
def whole_text():
    return fake_target.text(60)
