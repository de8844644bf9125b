"""Every rule for servers: kept by aerie-server, and found broken behind a proxy that lies."""

import os
import pathlib
import sys

import pytest
from aerie_draft.conformance import server_checks_stream
from aerie_draft.conformance.rules import SERVER_RULES
from aerie_draft.conformance.server_suite import ServerSettings, check_server
from lies import LIES, KeepsStreamSessions
from lying_proxy import LyingProxy, Truth

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

from server_process import ServerProcess  # noqa: E402

# Small enough to fill, so that every limit can be met.
LIMITS = (
    "--max-context 512 --kv-memory 2MiB --max-sessions 64 --max-message-bytes 2MiB"
    " --max-rows-per-call 256 --shared-memory"
).split()
SHORT_LEASE = {"S-LEASE"}
LONG = os.environ.get("AERIE_CONFORMANCE_LONG") == "1"


@pytest.fixture(scope="module")
def built():
    if "AERIE_BIN" not in os.environ:
        pytest.skip("AERIE_BIN is not set: this build has no aerie-server")


@pytest.fixture(scope="module")
def server(built, tmp_path_factory):
    with ServerProcess(tmp_path_factory.mktemp("server"), *LIMITS) as process:
        yield process


@pytest.fixture(scope="module")
def short_lease(built, tmp_path_factory):
    """Calls of other rules may take longer than its lease on a busy machine."""
    with ServerProcess(tmp_path_factory.mktemp("lease"), "--session-lease", "1s") as process:
        yield process


def check(address, rules=None):
    settings = ServerSettings(None if rules is None else frozenset(rules), intrusive=True)
    return check_server(address, settings)


def test_aerie_server_keeps_every_rule(server):
    report = check(server.address)
    assert not report.failed(), report.text()
    assert report.skipped() == SHORT_LEASE, report.text()


def test_aerie_server_closes_sessions_whose_lease_has_run_out(short_lease):
    report = check(short_lease.address, SHORT_LEASE)
    assert report.passed() == SHORT_LEASE, report.text()


def test_a_proxy_that_does_not_lie_changes_nothing(server):
    with LyingProxy(server.address, Truth()) as proxy:
        report = check(proxy.address, None if LONG else {"S-STREAM-GARBAGE", "S-ERROR-DETAIL"})
    assert not report.failed(), report.text()


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.__name__)
def test_a_lie_is_found(server, request, lie, monkeypatch):
    if lie is KeepsStreamSessions:
        monkeypatch.setattr(server_checks_stream, "GONE", 1.0)  # It would be waited for in vain.
    must, may = LIES[lie]
    lease = must == SHORT_LEASE
    target = request.getfixturevalue("short_lease") if lease else server
    # In the long form all rules see every lie, and those that have nothing to do with it pass.
    rules = None if LONG and not lease else must | {"S-OPEN"}
    with LyingProxy(target.address, lie()) as proxy:
        report = check(proxy.address, rules)
    assert must <= report.failed(), report.text()
    assert report.failed() <= must | may, report.text()


def test_every_rule_has_a_lie_that_breaks_it():
    assert set().union(*(must for must, _ in LIES.values())) == set(SERVER_RULES)
