"""Starting and stopping: bad flags, taken ports, draining, clients that die."""

import os
import signal
import socket
import subprocess
import sys
import threading

import grpc
import pytest

from server_process import BINARY, DRAFTER, PATIENCE, TARGET, ServerProcess, wait_until


def run(*flags, **variables):
    """The program to its end: (exit code, standard output, standard error)."""
    done = subprocess.run([str(word) for word in (BINARY, *flags)], capture_output=True, text=True,
                          timeout=PATIENCE, env={**os.environ, **variables})
    return done.returncode, done.stdout, done.stderr


def test_help_and_version_are_printed():
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    assert "--max-k N=16" in out and "AERIE_MAX_K" in out
    code, out, err = run("--version")
    assert (code, err) == (0, "")
    assert out.startswith("aerie-server ")


@pytest.mark.parametrize("flags, message", [
    ((), "--drafter is missing; expected"),
    (("--fast",), '"--fast" on the command line is not known; expected'),
    (("--drafter", "d", "--target", "t", "--max-k", "0"), "--max-k is 0; expected 1..128;"),
    (("--drafter", "d", "--target", "t", "--log-level", "loud"), 'log level is "loud"; expected'),
    (("--drafter", "d", "--target", "t", "--device", "tpu"), '--device is "tpu"; expected cpu, cuda or cuda:N;'),
])
def test_a_bad_command_line_stops_with_flag_value_and_remedy(flags, message):
    code, out, err = run(*flags)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_the_environment_is_read():
    code, _, err = run(AERIE_DRAFTER="d", AERIE_TARGET="t", AERIE_MAX_K="many")
    assert code == 2
    assert '--max-k is "many"' in err


def test_a_folder_that_is_none_is_named():
    code, _, err = run("--drafter", "/no/such/folder", "--target", TARGET, "--listen", "127.0.0.1:0")
    assert code == 1
    assert "/no/such/folder" in err


@pytest.mark.parametrize("flag", ["--listen", "--metrics-listen", "--admin-listen"])
def test_a_taken_address_is_named(flag):
    other = [word for name, value in (("--listen", "127.0.0.1:0"), ("--metrics-listen", "off"))
             if name != flag for word in (name, value)]
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = "127.0.0.1:%d" % holder.getsockname()[1]
        code, _, err = run("--drafter", DRAFTER, "--target", TARGET, flag, taken, *other)
    assert code == 1
    assert taken in err.splitlines()[-1]
    assert "expected" in err.splitlines()[-1]


def test_metrics_can_be_off(tmp_path):
    port_file = tmp_path / "ports.json"
    command = [BINARY, "--drafter", DRAFTER, "--target", TARGET, "--listen", "127.0.0.1:0", "--metrics-listen",
               "off", "--port-file", port_file]
    process = subprocess.Popen([str(word) for word in command], stderr=subprocess.DEVNULL)
    try:
        wait_until(port_file.exists, "the port file")
        assert '"metrics":null' in port_file.read_text()
        process.terminate()
        assert process.wait(timeout=PATIENCE) == 0
    finally:
        process.kill()
        process.wait()


class OpenStream:
    """A DraftStream with a session on it, fed request by request."""

    def __init__(self, stub, pb, manifest):
        self.pb = pb
        self.more = threading.Semaphore(0)
        self.requests = []
        self.stream = stub.DraftStream(self.feed())
        self.send(open_session=pb.OpenSessionRequest(manifest=manifest))
        self.session = next(self.stream).open_session.session_id

    def feed(self):
        while True:
            self.more.acquire()
            request = self.requests.pop(0)
            if request is None:
                return
            yield request

    def send(self, **request):
        self.requests.append(self.pb.DraftStreamRequest(**request))
        self.more.release()

    def half_close(self):
        self.requests.append(None)
        self.more.release()


def test_a_signal_ends_streams_with_a_status_and_the_process_with_0(tmp_path, pb, connect, manifest, recording):
    with ServerProcess(tmp_path) as server:
        idle = OpenStream(connect(server.address), pb, manifest)
        busy = OpenStream(connect(server.unix_address), pb, manifest)
        rows = recording.sequences[0].rows(pb, 0, 150)
        busy.send(id=7, draft=pb.DraftRequest(session_id=busy.session, k=16, **rows))
        wait_until(lambda: server.metric("grpc_server_msg_received_total", grpc_method="DraftStream") == 3,
                   "the draft call to arrive")
        server.signal()
        response = next(busy.stream)
        assert response.id == 7 and len(response.draft.tree.token_ids) == 16, "the open round is answered"
        for stream in (idle, busy):
            with pytest.raises(grpc.RpcError) as end:
                next(stream.stream)
            assert end.value.code() == grpc.StatusCode.UNAVAILABLE
            assert "draining" in end.value.details()
            stream.half_close()
        assert server.wait() == 0
        assert "drained\n" in server.log()
        assert not os.path.exists(f"{tmp_path}/aerie.sock")


def test_a_watch_on_health_sees_the_drain_and_does_not_hold_it_up(tmp_path, connect):
    with ServerProcess(tmp_path, "--drain-timeout", "1h") as server:
        watch = connect(server.address).channel.unary_stream("/grpc.health.v1.Health/Watch")(b"")
        assert next(watch) == b"\x08\x01", "SERVING"
        server.signal()
        assert next(watch) == b"\x08\x02", "NOT_SERVING"
        assert server.wait() == 0


def many_rows(recording, pb, count):
    """A call of `count` rows, recorded ones again and again: work for a while."""
    sequence = recording.sequences[0]
    rows = len(sequence.tokens) - 1
    data = (sequence.aux[:rows * sequence.row_bytes] * (count // rows + 1))[:count * sequence.row_bytes]
    tokens = (sequence.tokens[1:] * (count // rows + 1))[:count]
    return dict(base_length=0, token_ids=tokens,
                hidden_states=pb.HiddenStates(dtype=pb.DATA_TYPE_BFLOAT16, data=data))


def start_long_calls(server, stub, pb, manifest, recording, count):
    calls = [stub.Draft.future(pb.DraftRequest(manifest=manifest, k=1, **many_rows(recording, pb, 4096)))
             for _ in range(count)]
    wait_until(lambda: server.metric("grpc_server_started_total", grpc_method="Draft") == count,
               "the calls to arrive")
    return calls


def test_a_drain_that_takes_too_long_is_cut_off_and_says_so(tmp_path, pb, connect, manifest, recording):
    with ServerProcess(tmp_path, "--drain-timeout", "100ms") as server:
        calls = start_long_calls(server, connect(server.address), pb, manifest, recording, 16)
        server.signal()
        codes = {call.exception().code() for call in calls if call.exception()}
        assert codes and codes <= {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
        assert server.wait() == 1
        assert "calls were cut off, still open after --drain-timeout 100ms" in server.log()


def test_a_second_signal_ends_the_process_at_once(tmp_path, pb, connect, manifest, recording):
    with ServerProcess(tmp_path) as server:
        start_long_calls(server, connect(server.address), pb, manifest, recording, 16)
        server.signal(signal.SIGINT)
        wait_until(lambda: "draining" in server.log(), "the first signal to be seen")
        server.signal(signal.SIGTERM)
        assert server.wait() == 128 + signal.SIGTERM


VANISHING_CLIENT = """
import sys, time
sys.path.insert(0, sys.argv[2])
import grpc
from aerie.v1 import draft_pb2 as pb, draft_pb2_grpc
manifest = pb.Manifest.FromString(bytes.fromhex(sys.argv[3]))
def requests():
    yield pb.DraftStreamRequest(open_session=pb.OpenSessionRequest(manifest=manifest))
    while True:
        time.sleep(3600)
stream = draft_pb2_grpc.DraftServiceStub(grpc.insecure_channel(sys.argv[1])).DraftStream(requests())
print(next(stream).open_session.session_id, flush=True)
time.sleep(3600)
"""


def test_a_client_that_is_killed_loses_its_session_and_hurts_no_other(tmp_path, pb, connect, manifest, recording):
    with ServerProcess(tmp_path) as server:
        stub = connect(server.address)
        session = stub.OpenSession(pb.OpenSessionRequest(manifest=manifest)).session_id
        stub.Draft(pb.DraftRequest(session_id=session, **recording.sequences[0].rows(pb, 0, 30)))
        stubs = os.path.dirname(os.path.dirname(os.path.dirname(pb.__file__)))
        client = subprocess.Popen(
            [sys.executable, "-c", VANISHING_CLIENT, server.address, stubs, manifest.SerializeToString().hex()],
            stdout=subprocess.PIPE, text=True)
        assert client.stdout.readline().strip()
        assert server.metric("aerie_sessions") == 2
        client.kill()
        client.wait()
        wait_until(lambda: server.metric("aerie_sessions") == 1, "the session to be closed")
        expected = recording.facts["expected"]["first_drafts"][0]
        rows = recording.sequences[0].rows(pb, 30, expected["slot"] + 1)
        response = stub.Draft(pb.DraftRequest(session_id=session, k=8, **rows))
        assert list(response.tree.token_ids) == expected["draft"]


def test_a_restarted_server_tells_a_client_to_start_over(tmp_path, pb, connect, manifest, recording):
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
    rows = recording.sequences[0].rows(pb, 0, 30)
    with ServerProcess(tmp_path / "first") as server:
        stub = connect(server.address)
        session = stub.OpenSession(pb.OpenSessionRequest(manifest=manifest)).session_id
        stub.Draft(pb.DraftRequest(session_id=session, **rows))
    with ServerProcess(tmp_path / "second") as server:
        with pytest.raises(grpc.RpcError) as failure:
            connect(server.address).Draft(pb.DraftRequest(session_id=session, **rows))
        assert failure.value.code() == grpc.StatusCode.NOT_FOUND
        assert "row 0" in failure.value.details()


def functions_of(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return {line.split()[2] for line in lines.splitlines() if " T " in line}


def test_the_program_holds_one_copy_of_protobuf():
    """LibTorch carries one of its own, which must stay hidden: two that see each other crash."""
    lines = subprocess.run(["ldd", BINARY], capture_output=True, text=True, check=True).stdout.splitlines()
    paths = {line.split()[0].split(".so")[0]: line.split()[2] for line in lines if "=>" in line}
    assert sum("libprotobuf.so" in line for line in lines) == 1
    protobuf, torch = functions_of(paths["libprotobuf"]), functions_of(paths["libtorch_cpu"])
    assert len(protobuf) > 1000 and len(torch) > 1000
    assert not {name for name in protobuf & torch if "google8protobuf" in name}
