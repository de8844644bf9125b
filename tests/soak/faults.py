"""Clients that misbehave, each in one way, again and again until they are told to stop.

Every function takes a `World` and does its fault once. None of them may be felt by anybody else.
"""

from __future__ import annotations

import dataclasses
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import grpc


@dataclasses.dataclass
class World:
    pb: object
    address: str  # host:port
    manifest: object
    sequences: list
    draw: random.Random

    def connect(self):
        channel = grpc.insecure_channel(
            self.address, options=[("grpc.use_local_subchannel_pool", 1)]
        )
        stub = self.pb.Stub(channel)
        stub.channel = channel
        return stub

    def open(self, stub, **options):
        request = self.pb.OpenSessionRequest(
            manifest=self.manifest, options=self.pb.SessionOptions(**options), client="troublemaker"
        )
        return stub.OpenSession(request, timeout=30).session_id

    def rows(self, count):
        return self.draw.choice(self.sequences).rows(self.pb, 0, count)


def garbage(world):
    """Bytes that are no HTTP/2, and frames that are cut off."""
    host, port = world.address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        if world.draw.random() < 0.5:
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        connection.sendall(world.draw.randbytes(world.draw.randrange(1, 4096)))
        if world.draw.random() < 0.5:
            connection.shutdown(socket.SHUT_WR)


def wrong_calls(world):
    """Calls that must be refused: no session, wrong width, NaN, ids outside the vocabulary."""
    stub = world.connect()
    session = world.open(stub)
    good = world.rows(4)
    states = good["hidden_states"]
    nan = world.pb.HiddenStates(dtype=states.dtype, data=b"\xc0\x7f" * (len(states.data) // 2))
    short = world.pb.HiddenStates(dtype=states.dtype, data=states.data[:-2])
    calls = [
        dict(session_id="nobody", **good),
        dict(session_id=session, **{**good, "hidden_states": nan}),
        dict(session_id=session, **{**good, "hidden_states": short}),
        dict(session_id=session, **{**good, "token_ids": [1 << 31] * 4}),
        dict(session_id=session, **{**good, "base_length": 77}),
        dict(session_id=session, k=10**6, **good),
    ]
    for call in world.draw.sample(calls, 3):
        try:
            stub.Draft(world.pb.DraftRequest(**call), timeout=30)
        except grpc.RpcError:
            continue
        raise AssertionError(f"a call that must be refused was served: {call.keys()}")
    stub.channel.close()


def given_up(world):
    """Deadlines that cannot be kept, and calls that are cancelled while they run."""
    stub = world.connect()
    session = world.open(stub)
    for _ in range(4):
        request = world.pb.DraftRequest(session_id=session, k=8, **world.rows(40))
        timeout = world.draw.choice((0.001, 0.003, 30))
        call = stub.Draft.future(request, timeout=timeout)
        if world.draw.random() < 0.5:
            threading.Event().wait(world.draw.random() * 0.01)
            call.cancel()
        try:
            call.result()
        except (grpc.RpcError, grpc.FutureCancelledError):
            pass
    stub.channel.close()


def abandoned(world):
    """Sessions that are never closed: the lease has to end them."""
    stub = world.connect()
    for _ in range(3):
        session = world.open(stub)
        try:
            stub.Draft(
                world.pb.DraftRequest(session_id=session, k=2, **world.rows(30)), timeout=30
            )
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED:
                raise
    stub.channel.close()


def forks(world):
    """A crowd of sessions on the same rows, closed in any order, some never."""
    stub = world.connect()
    first = world.open(stub)
    try:
        stub.Draft(world.pb.DraftRequest(session_id=first, k=0, **world.rows(50)), timeout=30)
        sessions = [first]
        for _ in range(5):
            request = world.pb.OpenSessionRequest(manifest=world.manifest, client="troublemaker")
            request.fork.session_id = world.draw.choice(sessions)
            request.fork.length = world.draw.randrange(1, 51)
            sessions.append(stub.OpenSession(request, timeout=30).session_id)
    except grpc.RpcError as error:
        if error.code() not in (
            grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.FAILED_PRECONDITION,
            grpc.StatusCode.INVALID_ARGUMENT,
        ):
            raise
    else:
        for session in world.draw.sample(sessions, 4):
            stub.CloseSession(world.pb.CloseSessionRequest(session_id=session), timeout=30)
    stub.channel.close()


def half_closed(world):
    """Streams whose client says that it is done while answers are under way."""
    stub = world.connect()
    open_session = world.pb.OpenSessionRequest(manifest=world.manifest)
    requests = [world.pb.DraftStreamRequest(id=1, open_session=open_session)]
    answers = stub.DraftStream(iter(requests), timeout=30)
    assert next(answers).open_session.session_id
    for _ in answers:
        raise AssertionError("an answer that nobody asked for")
    stub.channel.close()


def slow_reader(world):
    """A stream that asks and asks, and does not read."""
    stub = world.connect()
    stop = threading.Event()

    def requests():
        for number in range(1, 2001):
            if stop.is_set():
                return
            call = world.pb.DraftRequest(manifest=world.manifest, k=1, **world.rows(8))
            yield world.pb.DraftStreamRequest(id=number, draft=call)

    answers = stub.DraftStream(requests(), timeout=60)
    threading.Event().wait(1.0)
    stop.set()
    answers.cancel()
    stub.channel.close()


_KILLED = """
import sys, grpc, threading
sys.path.insert(0, sys.argv[1])
from aerie.v1 import draft_pb2 as pb, draft_pb2_grpc as rpc
stub = rpc.DraftServiceStub(grpc.insecure_channel(sys.argv[2]))
manifest = pb.Manifest.FromString(bytes.fromhex(sys.argv[3]))
rows = pb.DraftRequest.FromString(sys.stdin.buffer.read())
def requests():
    for n in range(1, 9):
        yield pb.DraftStreamRequest(id=n, open_session=pb.OpenSessionRequest(manifest=manifest))
    threading.Event().wait()
sessions = []
for answer in stub.DraftStream(requests()):
    rows.session_id = answer.open_session.session_id
    stub.Draft(rows)
    print(answer.id, flush=True)
"""


def killed(world):
    """A client process that dies with sessions open and a stream under way."""
    request = world.pb.DraftRequest(k=4, **world.rows(20))
    child = subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(world.pb.folder), world.address,
         world.manifest.SerializeToString().hex()],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )
    child.stdin.write(request.SerializeToString())
    child.stdin.close()
    for _ in range(world.draw.randrange(1, 8)):
        if not child.stdout.readline():
            break
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()


FAULTS = (garbage, wrong_calls, given_up, abandoned, forks, half_closed, slow_reader, killed)


class TroubleMaker(threading.Thread):
    """Does one fault after the other until `stop`."""

    def __init__(self, world, stop, counts):
        super().__init__(daemon=True)
        self._world, self._stop_asked, self._counts = world, stop, counts

    def run(self):
        while not self._stop_asked.is_set():
            fault = self._world.draw.choice(FAULTS)
            try:
                fault(self._world)
            except grpc.RpcError as error:
                # It may itself be turned away by a full server; anything else is a finding.
                if error.code() not in (
                    grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE,
                    grpc.StatusCode.CANCELLED,
                ):
                    self._counts.surprises.append(f"{fault.__name__}: {error.code()} {error.details()}")
            except (AssertionError, OSError) as error:
                self._counts.surprises.append(f"{fault.__name__}: {error}")
            self._counts.faults[fault.__name__] += 1
            time.sleep(self._world.draw.random() * 0.1)
