"""Rows in shared memory: what the real server drafts from them, and what is left when a side is killed."""

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys

import grpc
import numpy as np
import pytest

import python_package
from server_process import ROOT, ServerProcess, wait_until

K = 8


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The Python package of this checkout, built: the environment to run it in."""
    return python_package.build(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def sharing(tmp_path_factory):
    """A server that takes rows in shared memory and is left as it was found."""
    with ServerProcess(tmp_path_factory.mktemp("sharing"), "--shared-memory") as process:
        yield process


class Worker:
    """shared_worker.py as a process."""

    def __init__(self, package, address, stored, rows="shm", transport="unary"):
        self.process = subprocess.Popen(
            [sys.executable, str(ROOT / "tests/e2e/shared_worker.py"), address, rows, transport, str(stored)],
            env=package, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="module")
def first_draft(recording):
    """(sequence, rows that its first draft takes, the draft)."""
    expected = recording.facts["expected"]["first_drafts"][3]
    return recording.sequences[3], expected["slot"] + 1, expected["draft"]


@pytest.fixture
def stored(pb, first_draft, tmp_path):
    sequence, count, _ = first_draft
    fields = sequence.rows(pb, 0, count)
    path = tmp_path / "rows.npz"
    words = np.frombuffer(fields["hidden_states"].data, "<u2").reshape(count, -1)
    np.savez(path, tokens=np.array(fields["token_ids"]), rows=words)
    return path


def received(server, method):
    return server.metric("aerie_rpc_received_bytes_total", grpc_method=method)


def rows_in_shared_memory(server):
    return server.metric("aerie_hidden_rows_total", transport="shared_memory")


@pytest.mark.parametrize("transport, method", [("unary", "Draft"), ("stream", "DraftStream")])
def test_drafts_from_shared_memory_are_those_of_the_recording(package, sharing, stored, first_draft, transport, method):
    _, count, draft = first_draft
    before, committed = received(sharing, method), rows_in_shared_memory(sharing)
    with Worker(package, sharing.unix_address, stored, transport=transport) as worker:
        assert "session" in worker.ask("open")
        assert worker.ask(f"draft 0 {count} {K}") == {"tokens": draft, "length": count}
    rows_bytes = count * 3 * 576 * 2
    assert 0 < received(sharing, method) - before < rows_bytes / 10
    assert rows_in_shared_memory(sharing) - committed == count


def test_a_killed_worker_is_forgotten_and_leaves_nothing(package, stored, first_draft, tmp_path):
    _, count, draft = first_draft
    with ServerProcess(tmp_path, "--shared-memory", "--max-shared-segments-per-client", "1") as server:
        for killed in range(1, 3):  # the second one finds the quota free
            with Worker(package, server.unix_address, stored) as worker:
                assert "session" in worker.ask("open")
                assert worker.ask(f"draft 0 {count} {K}")["tokens"] == draft
                assert len(segments_open_in(server.process.pid)) == 1
                worker.process.send_signal(signal.SIGKILL)
                worker.process.wait()
            wait_until(lambda: server.log().count("forgot a segment") == killed, "the server to forget the segment")
        assert not segments_open_in(server.process.pid)
        server.signal()
        assert server.wait() == 0


def segments_open_in(pid):
    folder = f"/proc/{pid}/fd"
    links = []
    for name in os.listdir(folder):
        try:
            links.append(os.readlink(f"{folder}/{name}"))
        except OSError:
            pass  # closed meanwhile
    return [link for link in links if link.startswith("/dev/shm/aerie-")]


def test_a_worker_goes_on_with_another_segment_when_its_server_was_killed(package, stored, first_draft, tmp_path):
    _, count, draft = first_draft
    with ServerProcess(tmp_path, "--shared-memory") as server:
        address = server.unix_address
        worker = Worker(package, address, stored)
        assert "session" in worker.ask("open")
        assert worker.ask(f"draft 0 {count} {K}")["tokens"] == draft
        # Its name has gone, so it is nobody's to leave behind.
        assert [link for link in segments_open_in(server.process.pid) if link.endswith(" (deleted)")]
        server.signal(signal.SIGKILL)
        server.wait()
    with worker:
        assert "error" in worker.ask(f"draft 0 {count} {K}")
        (tmp_path / "ports.json").unlink()
        with ServerProcess(tmp_path, "--shared-memory") as server:
            assert server.unix_address == address
            wait_until(lambda: "session" in worker.ask("open"), "the worker to find the new server")
            # The first call meets a server that does not know the segment, and all find one that does after it.
            for _ in range(2):
                assert worker.ask(f"draft 0 {count} {K}")["tokens"] == draft
            assert len(segments_open_in(server.process.pid)) == 1
            assert received(server, "RegisterSharedMemory") > 0


class Segment:
    """Made by hand, to be spoiled."""

    def __init__(self, size):
        self.name, self.key = f"/aerie-e2e-{os.getpid()}", os.urandom(32)
        self.fd = os.open(f"/dev/shm{self.name}", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        fcntl.flock(self.fd, fcntl.LOCK_EX)
        os.ftruncate(self.fd, size)
        os.pwrite(self.fd, b"AERIESHM" + self.key, 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.unlink(f"/dev/shm{self.name}")
        os.close(self.fd)


def refusal(pb, call):
    with pytest.raises(grpc.RpcError) as caught:
        call()
    status = pb.StatusDetails.FromString(dict(caught.value.trailing_metadata())["grpc-status-details-bin"])
    detail = pb.ErrorDetail()
    assert any(packed.Unpack(detail) for packed in status.details)
    return detail.reason


def test_a_worker_that_truncates_its_segment_hurts_itself_alone(sharing, pb, connect, manifest, first_draft):
    sequence, count, draft = first_draft
    stub = connect(sharing.unix_address)
    fields = sequence.rows(pb, 0, count)
    data = fields["hidden_states"].data
    with Segment(64 + 64 + len(data)) as segment:
        registered = stub.RegisterSharedMemory(pb.RegisterSharedMemoryRequest(name=segment.name, key=segment.key))
        os.pwrite(segment.fd, data, 128)
        os.pwrite(segment.fd, (77).to_bytes(8, "little"), 64)
        session = stub.OpenSession(pb.OpenSessionRequest(manifest=manifest)).session_id
        shared = pb.SharedRows(segment_id=registered.segment_id, offset=64, length=len(data), stamp=77)
        rows = {**fields, "hidden_states": pb.HiddenStates(dtype=pb.DATA_TYPE_BFLOAT16, shared=shared)}
        request = pb.DraftRequest(session_id=session, k=K, **rows)
        os.ftruncate(segment.fd, 4096)
        assert refusal(pb, lambda: stub.Draft(request)) == "SHARED_MEMORY_BOUNDS"
        assert sharing.process.poll() is None
        inline = stub.Draft(pb.DraftRequest(session_id=session, k=K, **fields))
        assert list(inline.tree.token_ids) == draft
        stub.UnregisterSharedMemory(pb.UnregisterSharedMemoryRequest(segment_id=registered.segment_id))
        assert refusal(pb, lambda: stub.Draft(request)) == "SHARED_MEMORY_UNKNOWN"


def test_shared_memory_is_off_unless_it_is_allowed(server, pb, connect):
    stub = connect(server.unix_address)
    assert pb.TRANSPORT_SHARED_MEMORY not in stub.GetServerInfo(pb.GetServerInfoRequest()).transports
    request = pb.RegisterSharedMemoryRequest(name="/aerie-x", key=b"k" * 32)
    assert refusal(pb, lambda: stub.RegisterSharedMemory(request)) == "SHARED_MEMORY_OFF"


def own_address():
    """An address of this host that is not loopback; None: it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            return None
        address = probe.getsockname()[0]
    return None if address.startswith("127.") else address


def test_shared_memory_is_for_this_host_alone(pb, connect, tmp_path):
    address = own_address()
    if address is None:
        pytest.skip("this host has no address but loopback's")
    with ServerProcess(tmp_path, "--shared-memory", "--listen", f"{address}:0", "--insecure") as server:
        request = pb.RegisterSharedMemoryRequest(name="/aerie-x", key=b"k" * 32)
        stub = connect(server.ports["grpc"][2])
        assert pb.TRANSPORT_SHARED_MEMORY not in stub.GetServerInfo(pb.GetServerInfoRequest()).transports
        assert refusal(pb, lambda: stub.RegisterSharedMemory(request)) == "SHARED_MEMORY_NOT_LOCAL"
        for near in (server.address, server.unix_address):
            stub = connect(near)
            assert pb.TRANSPORT_SHARED_MEMORY in stub.GetServerInfo(pb.GetServerInfoRequest()).transports
            assert refusal(pb, lambda: stub.RegisterSharedMemory(request)) == "SHARED_MEMORY_INVALID"
