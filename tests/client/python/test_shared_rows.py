"""Rows that a worker leaves in shared memory: what the server finds there, and what is left when
one of the two is gone."""

import os

import aerie_draft
import grpc
import numpy as np
import pytest
from aerie_draft._proto import draft_pb2
from conftest import make_manifest
from fake_server import FakeServer, Refusal
from file_locks import is_locked


def segments():
    return {name for name in os.listdir("/dev/shm") if name.startswith("aerie-")}


class SharingServer(FakeServer):
    """Takes rows in shared memory, as the contract says."""

    def __init__(self, **overrides):
        super().__init__(**overrides)
        self.offers = True
        self.known: dict[str, int] = {}  # by id, an open file
        self.registered: list[draft_pb2.RegisterSharedMemoryRequest] = []
        self.unregistered: list[str] = []
        self.shared: list[draft_pb2.SharedRows] = []
        self.before_draft = self.fetch

    def server_info(self):
        response = super().server_info()
        if self.offers:
            response.transports.append(draft_pb2.TRANSPORT_SHARED_MEMORY)
        return response

    def RegisterSharedMemory(self, request, context):
        if not self.offers:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "off")
        fd = os.open(f"/dev/shm{request.name}", os.O_RDONLY)
        assert os.pread(fd, 40, 0) == b"AERIESHM" + request.key
        assert is_locked(fd)
        self.registered.append(request)
        name = f"segment-{len(self.registered)}"
        self.known[name] = fd
        return draft_pb2.RegisterSharedMemoryResponse(
            segment_id=name, size=os.fstat(fd).st_size
        )

    def UnregisterSharedMemory(self, request, context):
        self.unregistered.append(request.segment_id)
        return draft_pb2.UnregisterSharedMemoryResponse()

    def fetch(self, request):
        """Puts the rows where a fake session looks for them."""
        states = request.hidden_states
        if not states.HasField("shared"):
            return
        fd = self.known.get(states.shared.segment_id)
        if fd is None:
            raise Refusal(grpc.StatusCode.FAILED_PRECONDITION, "SHARED_MEMORY_UNKNOWN")
        self.shared.append(draft_pb2.SharedRows.FromString(states.shared.SerializeToString()))
        states.data = os.pread(fd, states.shared.length, states.shared.offset + 64)
        stamp = int.from_bytes(os.pread(fd, 8, states.shared.offset), "little")
        assert stamp == states.shared.stamp > 0
        states.ClearField("shared")


@pytest.fixture
def sharing():
    with SharingServer() as server:
        yield server


@pytest.fixture(params=["unary", "stream"])
def worker(sharing, request):
    options = dict(rows="shm", shared_memory_bytes=1 << 16, transport=request.param)
    with aerie_draft.DraftClient(sharing.address, **options) as client:
        yield client


def make_session(worker, **options):
    return worker.open_session(make_manifest(dtype=aerie_draft.DType.FLOAT32), **options)


def some_rows(count, seed=1):
    return np.random.default_rng(seed).normal(size=(count, 24)).astype(np.float32)


def test_rows_are_found_in_shared_memory_and_not_in_the_message(sharing, worker):
    session = make_session(worker)
    rows = some_rows(7)
    assert session.draft(0, range(7), rows, 2).tokens == (7, 7)
    assert session.draft(7, [9], rows[:1], 2).length == 8
    assert [shared.length for shared in sharing.shared] == [7 * 24 * 4, 24 * 4]
    assert sharing.requests[0].hidden_states.data == rows.tobytes()
    assert [request.client for request in sharing.registered] == [""]


def test_a_registered_segment_has_no_name_that_could_be_left_behind(sharing, worker):
    make_session(worker, client="batch")
    assert sharing.registered[0].name[1:] not in segments()
    assert sharing.registered[0].client == "batch"


def test_rows_that_find_no_room_go_in_the_message(sharing, worker):
    session = make_session(worker)
    rows = some_rows(700)  # 67,200 bytes
    session.draft(0, [1] * 700, rows, 0)
    assert not sharing.shared
    assert sharing.requests[0].hidden_states.data == rows.tobytes()
    session.draft(700, [1], rows[:1], 0)
    assert len(sharing.shared) == 1


def test_a_server_that_has_lost_the_segment_gets_another_one(sharing, worker):
    session = make_session(worker)
    session.draft(0, [1], some_rows(1), 1)
    sharing.known.clear()
    assert session.draft(1, [2], some_rows(1), 1).length == 2  # in the message
    assert len(sharing.registered) == 2
    assert session.draft(2, [3], some_rows(1), 1).length == 3
    assert [shared.segment_id for shared in sharing.shared] == ["segment-1", "segment-2"]


def test_rows_that_are_refused_otherwise_go_in_messages_until_a_session_opens(sharing, worker):
    session = make_session(worker)

    def refuse(request):
        if request.hidden_states.HasField("shared"):
            raise Refusal(grpc.StatusCode.INVALID_ARGUMENT, "SHARED_MEMORY_BOUNDS")

    sharing.before_draft = refuse
    assert session.draft(0, [1], some_rows(1), 1).length == 1
    assert session.draft(1, [1], some_rows(1), 1).length == 2
    assert len(sharing.registered) == 1
    sharing.before_draft = sharing.fetch
    make_session(worker).draft(0, [1], some_rows(1), 1)
    assert [shared.segment_id for shared in sharing.shared] == ["segment-2"]


def test_a_server_that_holds_enough_copies_gets_rows_in_the_message_once(sharing, worker):
    session = make_session(worker)
    full = [True]

    def refuse(request):
        if request.hidden_states.HasField("shared") and full[0]:
            raise Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "SHARED_MEMORY_QUOTA")
        sharing.fetch(request)

    sharing.before_draft = refuse
    assert session.draft(0, [1], some_rows(1), 1).length == 1
    full[0] = False
    assert session.draft(1, [1], some_rows(1), 1).length == 2
    assert [shared.segment_id for shared in sharing.shared] == ["segment-1"]


def test_other_refusals_stay_refusals(sharing, worker):
    session = make_session(worker)

    def refuse(request):
        raise Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL")

    sharing.before_draft = refuse
    with pytest.raises(aerie_draft.Overloaded):
        session.draft(0, [1], some_rows(1), 1)
    assert len(sharing.registered) == 1


def test_a_server_that_takes_no_rows_in_shared_memory_is_told_by_what_to_do(server):
    with aerie_draft.DraftClient(server.address, rows="shm") as client:
        with pytest.raises(aerie_draft.ProtocolMismatch, match="--shared-memory") as refused:
            client.open_session(make_manifest())
    assert refused.value.reason == "SHARED_MEMORY_OFF"


def test_a_segment_that_finds_no_room_is_told_before_anything_is_drafted(sharing):
    with aerie_draft.DraftClient(sharing.address, rows="shm") as client:
        client._shared_rows._size = 1 << 50  # more than any machine has
        with pytest.raises(aerie_draft.AerieError, match="larger one") as refused:
            make_session(client)
    assert refused.value.reason == "SHARED_MEMORY_ROOM"


def test_a_worker_goes_on_when_its_next_server_takes_no_rows_in_shared_memory(sharing):
    with aerie_draft.DraftClient(sharing.address, rows="shm", timeout=60) as client:
        session = make_session(client)
        sharing.known.clear()
        sharing.offers = False
        assert session.draft(0, [1], some_rows(1), 1).length == 1
        client.server_info()
        assert make_session(client).draft(0, [1], some_rows(1), 1).length == 1
    assert not sharing.shared


def test_a_client_that_closes_lets_go_of_its_segment(sharing):
    with aerie_draft.DraftClient(sharing.address, rows="shm") as client:
        client.open_session(make_manifest())
        assert is_locked(sharing.known["segment-1"])
    assert sharing.unregistered == ["segment-1"]
    assert not is_locked(sharing.known["segment-1"])


@pytest.mark.parametrize(
    "options, words",
    [
        (dict(rows="shared"), "rows is 'shared'"),
        (dict(rows="shm", shared_memory_bytes=65535), "shared_memory_bytes is 65535"),
    ],
)
def test_options_that_make_no_sense_are_refused_by_name(options, words):
    with pytest.raises(ValueError, match=words):
        aerie_draft.DraftClient("127.0.0.1:1", **options)
