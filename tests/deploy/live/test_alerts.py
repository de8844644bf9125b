"""Alerts that fire while something is broken on a live server, and that resolve when it is mended.

The shipped rules, with shorter windows and a shorter `for`: waiting ten minutes would show no more. Nothing here waits
for a time: each step is played until Prometheus says so, with a deadline.
"""

import dataclasses
import re
import signal

import grpc
import guarded_head
import pytest
from aerie_draft import DraftClient, captures_at
from aerie_draft._proto import draft_pb2, draft_pb2_grpc
from aerie_draft.codec import manifest_message
from aerie_draft.errors import ManifestMismatch
from recorded_rows import Recording
from server_process import ServerProcess, wait_until

from load import MANIFEST, ROW_BYTES
from prometheus_process import Prometheus
from replay import Replay
from wiring_exporter import WiringExporter

WINDOW = "10s"
SOURCE = 'aerie_wiring_sources{drafter="drafter",target="target",state="%s"}'
START = "process_start_time_seconds"


def shorten(rules):
    """The text of a rule file with all that takes minutes made seconds."""
    rules = re.sub(r"\[(5m|15m|30m|1h)\]", f"[{WINDOW}]", rules)
    return re.sub(r"^( *for:) .*$", r"\1 1s", rules, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def head(tmp_path_factory):
    return guarded_head.make_guarded_head(Recording(), tmp_path_factory.mktemp("guarded"))


@pytest.fixture(scope="module")
def server(head, tmp_path_factory):
    # One waiting call is the most: a burst finds the queue full.
    with ServerProcess(tmp_path_factory.mktemp("server"), "--max-queued", 1, "--name", "drafter", drafter=head) as process:
        yield process


@pytest.fixture(scope="module")
def exporter():
    with WiringExporter({SOURCE % "suspect": 0, SOURCE % "wrong": 0, START: 1000}) as process:
        yield process


@pytest.fixture(scope="module")
def prometheus(server, exporter, tmp_path_factory):
    targets = [server.ports["metrics"], exporter.address]
    with Prometheus(tmp_path_factory.mktemp("prometheus"), targets, change_rules=shorten) as process:
        wait_until(lambda: process.query("sum(up)") == {frozenset(): 2.0}, "both to be scraped")
        yield process


@pytest.fixture
def replay(server):
    with DraftClient(server.address, timeout=60.0) as client:
        yield Replay(client)


def until(prometheus, alert, state, rounds=None, instance=None):
    """Plays rounds until the alert is in that state; with `instance`, for that one."""
    def there():
        if rounds is not None:
            next(rounds)
        return prometheus.alert_state(alert, instance) == state
    wait_until(there, f"{alert} to be {state}")


def test_rows_of_swapped_captures_fire_low_acceptance_and_right_ones_end_it(prometheus, replay):
    alert = "AerieAcceptLengthLow"
    until(prometheus, alert, "inactive", replay.rounds())
    # Of the recorded texts the worst gives 1.28 with right rows, and the best 1.08 with swapped ones.
    until(prometheus, alert, "firing", replay.rounds(swapped=True))
    until(prometheus, alert, "inactive", replay.rounds())


def test_a_worker_that_counts_otherwise_fires_until_it_counts_right(prometheus, replay):
    alert = "AerieAcceptReportMismatch"
    until(prometheus, alert, "inactive", replay.rounds())
    until(prometheus, alert, "firing", replay.rounds(says_more=1))
    until(prometheus, alert, "inactive", replay.rounds())


def test_a_worker_of_another_wiring_is_refused_and_told_until_it_gives_up(prometheus, server):
    alert = "AerieCallsRejected"
    other = dataclasses.replace(MANIFEST, captures=captures_at((3, 16, 28)))

    def refusals(client):
        while True:
            with pytest.raises(ManifestMismatch):
                client.open_session(other)
            yield

    until(prometheus, alert, "inactive")
    with DraftClient(server.address, timeout=60.0) as client:
        until(prometheus, alert, "firing", refusals(client))
    until(prometheus, alert, "inactive")


def test_a_burst_of_calls_fires_queue_full_until_it_is_over(prometheus, server):
    alert = "AerieQueueFull"

    def bursts(stub):
        while True:
            opening = draft_pb2.OpenSessionRequest(manifest=manifest_message(MANIFEST))
            sessions = [stub.OpenSession(opening).session_id for _ in range(6)]
            states = draft_pb2.HiddenStates(dtype=draft_pb2.DATA_TYPE_BFLOAT16, data=bytes(64 * ROW_BYTES))
            # Sent without waiting: while the first is computed, more than one of the others waits.
            calls = [stub.Draft.future(draft_pb2.DraftRequest(session_id=session, token_ids=range(64),
                                                              hidden_states=states, k=6)) for session in sessions]
            codes = {call.code() for call in calls}
            assert codes <= {grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED}, codes
            for session in sessions:
                stub.CloseSession(draft_pb2.CloseSessionRequest(session_id=session))
            yield

    until(prometheus, alert, "inactive")
    with grpc.insecure_channel(server.address) as channel:
        until(prometheus, alert, "firing", bursts(draft_pb2_grpc.DraftServiceStub(channel)))
    until(prometheus, alert, "inactive")


def test_the_guard_finds_a_worker_whose_captures_are_swapped_and_forgives_it_when_mended(prometheus, server, replay):
    """From the worker's rows to the alert, with nothing scripted between: the real guard, its metrics, the rule."""
    alert, instance = "AerieWiringWrong", server.ports["metrics"]
    until(prometheus, alert, "inactive", replay.rounds(), instance)
    until(prometheus, alert, "firing", replay.rounds(swapped=True), instance)
    until(prometheus, alert, "inactive", replay.rounds(), instance)


@pytest.mark.parametrize("alert, state", [("AerieWiringWrong", "wrong"), ("AerieWiringSuspect", "suspect")])
def test_a_verdict_on_the_wiring_fires_until_it_is_taken_back(prometheus, exporter, alert, state):
    # The real server's guard has a verdict of its own on the workers that other tests played.
    until(prometheus, alert, "inactive", instance=exporter.address)
    exporter.samples[SOURCE % state] = 1
    until(prometheus, alert, "firing", instance=exporter.address)
    exporter.samples[SOURCE % state] = 0
    until(prometheus, alert, "inactive", instance=exporter.address)


def test_a_reload_that_fails_is_told_until_one_succeeds_and_drafts_go_on(prometheus, server, head, replay):
    alert, rounds = "AerieDrafterReloadFailed", replay.rounds()
    # A link to the demo's, which is to stay whole.
    config = head / "config.json"
    right = config.readlink()
    until(prometheus, alert, "inactive", rounds)
    config.unlink()
    config.write_text(right.read_text()[:100])
    try:
        server.signal(signal.SIGHUP)
        until(prometheus, alert, "firing", rounds)
        # What the runbook tells to look for.
        assert "drafter drafter was not loaded" in server.log()
    finally:
        config.unlink()
        config.symlink_to(right)
    # Files alone mend nothing.
    next(rounds)
    assert prometheus.alert_state(alert) == "firing"
    server.signal(signal.SIGHUP)
    until(prometheus, alert, "inactive", rounds)


def test_a_server_that_does_not_answer_scrapes_is_told_until_it_does(prometheus, server):
    alert = "AerieExporterDown"
    until(prometheus, alert, "inactive")
    server.signal(signal.SIGSTOP)
    try:
        until(prometheus, alert, "firing")
    finally:
        server.signal(signal.SIGCONT)
    until(prometheus, alert, "inactive")


def test_a_start_is_told_once_and_many_are_told_louder(prometheus, exporter):
    until(prometheus, "AerieServerRestarted", "inactive")
    exporter.samples[START] += 1
    until(prometheus, "AerieServerRestarted", "firing")
    until(prometheus, "AerieServerRestarted", "inactive")

    def starts():
        while True:
            exporter.samples[START] += 1
            yield

    until(prometheus, "AerieServerRestarting", "firing", starts())
    until(prometheus, "AerieServerRestarting", "inactive")
