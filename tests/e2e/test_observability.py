"""What the server tells beside its metrics page: log, request log, traces, aerie-admin, --probe."""

import json
import os
import signal
import socket
import stat
import subprocess

import grpc
import pytest

from server_process import BINARY, PATIENCE, ServerProcess, wait_until

ADMIN = BINARY.parent / "aerie-admin"
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACE = f"00-{TRACE_ID}-00f067aa0ba902b7-01"
OTHER_ID = "a" * 32
OTHER = f"00-{OTHER_ID}-{'b' * 16}-00"


def run(program, *words):
    """The program to its end: (exit code, standard output, standard error)."""
    done = subprocess.run([str(word) for word in (program, *words)], capture_output=True, text=True, timeout=PATIENCE)
    return done.returncode, done.stdout, done.stderr


def admin(server, *words):
    return run(ADMIN, "--address", server.address, "--admin-address", server.ports["admin"], *words)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A server that tells all it can."""
    folder = tmp_path_factory.mktemp("told")
    with ServerProcess(folder, "--log-format", "json", "--log-level", "debug", "--admin-listen", "127.0.0.1:0",
                       "--request-log", folder / "requests.jsonl") as server:
        yield server


def log_lines(server):
    """Each line has to be an object."""
    return [json.loads(line) for line in server.log().splitlines()]


def records(server):
    path = server.folder / "requests.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def record_of(server, session):
    """Once it is written, which is not before the session's last answer."""
    found = wait_until(lambda: [r for r in records(server) if r["session"] == session], f"the record of {session}")
    assert len(found) == 1
    return found[0]


def play(pb, stub, manifest, sequence, **options):
    """A session of one prompt and two rounds, whose target keeps the recorded text; its id and its record."""
    metadata = options.pop("metadata", None)
    session = stub.OpenSession(pb.OpenSessionRequest(manifest=manifest, **options), metadata=metadata).session_id
    stub.Draft(pb.DraftRequest(session_id=session, k=3, **sequence.rows(pb, 0, 20)))
    stub.Draft(pb.DraftRequest(session_id=session, k=2, **sequence.rows(pb, 20, 24)))
    closed = stub.CloseSession(pb.CloseSessionRequest(session_id=session, final_token_ids=sequence.tokens[25:28]))
    return session, closed.acceptance


def test_a_record_of_the_request_log_is_what_closing_the_session_answered(told, pb, connect, manifest, recording):
    session, acceptance = play(pb, connect(told.address), manifest, recording.sequences[0], client="blue",
                               options=pb.SessionOptions(acceptance_detail=True), metadata=[("traceparent", TRACE)])
    record = record_of(told, session)
    for name in ("num_accepted_draft_tokens", "num_draft_tokens", "num_spec_steps", "num_spec_tokens",
                 "completion_tokens", "unreported_drafts"):
        assert record[name] == getattr(acceptance, name), name
    for name in ("acceptance_histogram", "depth_histogram"):
        expected = {str(i): count for i, count in enumerate(getattr(acceptance, name)) if count}
        assert record[name] == expected, name
    assert record["num_spec_steps"] == 2
    assert record["per_step_drafted"] == list(acceptance.per_step_drafted) == [3, 2]
    assert record["per_step_accepted"] == list(acceptance.per_step_accepted)
    assert record["engine"] == acceptance.engine == "aerie"
    assert (record["end"], record["client"], record["target"]) == ("closed", "blue", manifest.target_id)
    assert (record["trace_id"], record["parent_id"]) == (TRACE_ID, "00f067aa0ba902b7")
    assert (record["calls"], record["failed_calls"], record["rows"]) == (2, 0, 24)
    assert record["bytes"] == 24 * 3 * 576 * 2
    phases = record["phase_seconds"]
    assert all(phases[name] > 0 for name in ("copy_in", "extend", "step", "total"))
    assert phases["copy_in"] + phases["extend"] + phases["step"] <= phases["total"]
    assert told.metric("aerie_request_log_records_total") >= 1
    assert told.metric("aerie_request_log_dropped_total") == 0


def test_the_request_log_is_for_its_owner_alone(told, pb, connect, manifest, recording):
    session, _ = play(pb, connect(told.address), manifest, recording.sequences[1])
    record_of(told, session)
    assert stat.S_IMODE(os.stat(told.folder / "requests.jsonl").st_mode) == 0o600


def test_a_stream_has_a_trace_and_each_of_its_sessions_may_have_its_own(told, pb, connect, manifest):
    requests = [pb.DraftStreamRequest(id=1, open_session=pb.OpenSessionRequest(manifest=manifest)),
                pb.DraftStreamRequest(id=2, open_session=pb.OpenSessionRequest(manifest=manifest, traceparent=OTHER))]
    stream = connect(told.address).DraftStream(iter(requests), metadata=[("traceparent", TRACE)])
    opened = {reply.id: reply.open_session.session_id for reply in stream}
    assert record_of(told, opened[1])["trace_id"] == TRACE_ID
    record = record_of(told, opened[2])
    assert (record["trace_id"], record["end"]) == (OTHER_ID, "stream_closed")


def test_a_traceparent_that_cannot_be_read_is_counted_and_ignored(told, pb, connect, manifest, recording):
    before = told.metric("aerie_traceparents_ignored_total")
    session, _ = play(pb, connect(told.address), manifest, recording.sequences[2],
                      metadata=[("traceparent", "00-not-a-trace")])
    assert record_of(told, session)["trace_id"] is None
    assert told.metric("aerie_traceparents_ignored_total") == before + 1


def test_a_json_log_has_the_session_and_the_trace_of_a_failed_call(told, pb, connect):
    stub = connect(told.address)
    with pytest.raises(grpc.RpcError):
        stub.CloseSession(pb.CloseSessionRequest(session_id="no\nsuch"), metadata=[("traceparent", TRACE)])
    found = wait_until(lambda: [line for line in log_lines(told) if line.get("session") == "no\nsuch"], "the line")
    assert found[0]["trace"] == TRACE_ID
    assert found[0]["level"] == "debug"
    assert "NOT_FOUND" in found[0]["message"]
    assert found[0]["drafter"] == "drafter"
    assert told.metric("aerie_calls_total", call="close_session", grpc_code="NotFound") == 1


def test_aerie_admin_asks_and_tells(told):
    assert admin(told, "health") == (0, "SERVING\n", "")
    code, out, _ = admin(told, "info")
    assert code == 0
    assert "drafter drafter version" in out and "boundary 2, boundary 15, boundary 27" in out
    code, out, _ = admin(told, "info", "--json")
    assert code == 0
    assert json.loads(out)["drafters"][0]["captures"][1]["boundary"] == 15
    assert admin(told, "log-level") == (0, "debug\n", "")
    assert admin(told, "log-level", "warn") == (0, "warn, was debug\n", "")
    code, out, _ = admin(told, "log-level", "debug", "--json")
    assert (code, json.loads(out)) == (0, {"previous": "LOG_LEVEL_WARN"})
    changes = [line["message"] for line in log_lines(told) if line["message"].startswith("log level")]
    assert changes[-2:] == ["log level warn, was debug, by SetLogLevel", "log level debug, was warn, by SetLogLevel"]


def test_aerie_admin_says_what_is_wrong_with_what_it_was_told(told):
    code, _, err = admin(told, "log-level", "loud")
    assert code == 2
    assert '"loud"; expected debug, info, warn, error or off' in err
    code, _, err = run(ADMIN, "--admin-address", told.address, "log-level")
    assert code == 2
    assert "compare --admin-address with the server's --listen and --admin-listen" in err
    code, _, err = run(ADMIN)
    assert code == 2
    assert "there is no command" in err
    code, _, err = run(ADMIN, "health", "--timeout", "soon")
    assert code == 2
    assert '--timeout is "soon"; expected' in err


def test_a_signal_switches_the_log_to_debug_and_back(tmp_path):
    with ServerProcess(tmp_path, "--log-level", "warn") as server:
        server.signal(signal.SIGUSR1)
        wait_until(lambda: "log level debug, was warn, by SIGUSR1" in server.log(), "more log")
        server.signal(signal.SIGUSR1)
        wait_until(lambda: "log level warn, was debug, by SIGUSR1" in server.log(), "less log")
        server.signal()
        assert server.wait() == 0


def test_a_probe_tells_who_serves(told):
    assert run(BINARY, "--probe", told.address) == (0, "SERVING\n", "")
    assert run(BINARY, f"--probe=unix:{told.folder}/aerie.sock") == (0, "SERVING\n", "")
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # taken, and not listened on
        address = "127.0.0.1:%d" % nobody.getsockname()[1]
        code, out, err = run(BINARY, "--probe", address)
    assert (code, out) == (2, "")
    assert address in err and "compare --probe with its --listen" in err


@pytest.mark.parametrize("words, message", [
    (("--probe", "nowhere"), '--probe is "nowhere"; expected host:port or unix:PATH'),
    (("--probe", "127.0.0.1:1", "--max-k", "3"), "--max-k comes with --probe 127.0.0.1:1; expected only --tls-ca"),
    (("--drafter", "d", "--target", "t", "--log-format", "xml"), 'log format is "xml"; expected text or json'),
    (("--drafter", "d", "--target", "t", "--request-log-files", "3"), "there is no --request-log"),
])
def test_flags_that_make_no_sense_are_named(words, message):
    code, out, err = run(BINARY, *words)
    assert (code, out) == (2, "")
    assert message in err


def test_a_request_log_that_cannot_be_written_stops_the_start(tmp_path):
    from server_process import DRAFTER, TARGET
    code, _, err = run(BINARY, "--drafter", DRAFTER, "--target", TARGET, "--listen", "127.0.0.1:0",
                       "--metrics-listen", "off", "--request-log", tmp_path / "none/requests")
    assert code == 1
    assert f"{tmp_path}/none/requests" in err.splitlines()[-1]
