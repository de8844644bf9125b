"""A connection that many calls are put on at once, and waited for together.

The engine's round is one message on one stream, with the calls of all its requests; a server that
does not know such batches gets them one by one, before the first answer is read. Nothing here blocks but `wait_any` and `server_info`, which say how long.
A link that failed, or fell silent, is closed and never used again; the next one has a TCP
connection of its own, so a host that went away without a word is not waited for for ever.
"""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Callable, Collection, Sequence

import grpc
from google.protobuf.message import Message

from aerie_draft import codec
from aerie_draft._proto import draft_pb2, draft_pb2_grpc
from aerie_draft.errors import AerieError, Unavailable, error_from_detail, error_from_rpc
from aerie_draft.security import Security, open_channel
from aerie_draft.transport import new_session_key
from aerie_draft.values import ServerInfo

# What a batch adds to one of its requests: a tag and a length.
_NESTING_BYTES = 16
_METHODS = {"open_session": "OpenSession", "draft": "Draft", "close_session": "CloseSession"}


class Call:
    """One call on its way. `response` or `error` is set before `done`."""

    def __init__(self, kind: str, posted_at: float):
        self.kind = kind
        self.posted_at = posted_at
        self.response = None
        self.error: AerieError | None = None
        self.done = False


class Link:
    """What both transports share. One thread posts and waits; answers come on gRPC's threads."""

    # Whether sessions outlive the link that they were opened on.
    sessions_survive = False

    def __init__(
        self,
        address: str,
        max_message_bytes: int = 64 << 20,
        token: str = "",
        security: Security | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._clock = clock
        self._changed = threading.Condition()
        # A proxy in front of several servers keeps all sessions of a link with one of them.
        self._metadata = [("aerie-session", new_session_key())]
        if token:
            self._metadata.append(("authorization", f"Bearer {token}"))
        self._channel = open_channel(
            address,
            [
                ("grpc.max_send_message_length", max_message_bytes),
                ("grpc.max_receive_message_length", max_message_bytes),
                # Without a pool of its own a new channel would take over the old connection.
                ("grpc.use_local_subchannel_pool", 1),
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 1000),
            ],
            security,
        )
        self._stub = draft_pb2_grpc.DraftServiceStub(self._channel)
        self.failure: AerieError | None = None
        # Of one message, as far as the server has told.
        self._most_requests = 1
        self._most_bytes = max_message_bytes

    def server_info(self, timeout: float, wait_for_ready: bool = False) -> ServerInfo:
        """Raises AerieError. `wait_for_ready`: keeps trying to connect until the time is over."""
        try:
            info = codec.server_info_value(
                self._stub.GetServerInfo(
                    draft_pb2.GetServerInfoRequest(),
                    timeout=timeout,
                    metadata=self._metadata,
                    wait_for_ready=wait_for_ready,
                )
            )
        except grpc.RpcError as error:
            raise error_from_rpc(error) from None
        self._most_requests = max(1, info.limits.max_batch_requests)
        self._most_bytes = min(self._most_bytes, info.limits.max_message_bytes or self._most_bytes)
        return info

    def post(self, messages: Sequence[tuple[str, Message]]) -> list[Call]:
        """Sends (kind, request) messages without waiting, together where that can be.

        A link that has failed gives calls that have failed.
        """
        calls = [Call(kind, self._clock()) for kind, _ in messages]
        if self.failure is None:
            self._send(list(zip(calls, (request for _, request in messages), strict=True)))
        else:
            for call in calls:
                self._settle(call, error=self.failure)
        return calls

    def wait_any(self, calls: Collection[Call], timeout: float) -> None:
        """Until one of the calls is done, or the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: any(call.done for call in calls), timeout)

    def close(self, grace: float = 0.0) -> None:
        """Calls that are under way get `grace` seconds; then they fail."""
        self._channel.close()

    def _send(self, calls: list[tuple[Call, Message]]) -> None:
        raise NotImplementedError

    def _settle(self, call: Call, response=None, error: AerieError | None = None) -> None:
        with self._changed:
            call.response, call.error, call.done = response, error, True
            self._changed.notify_all()


class UnaryLink(Link):
    """One rpc a call; all of a round are under way together."""

    sessions_survive = True

    def __init__(self, address: str, *args, patience: float, **kwargs):
        """`patience`: seconds after which the server need not serve a call any more."""
        super().__init__(address, *args, **kwargs)
        self._patience = patience
        self._under_way = 0

    def close(self, grace=0.0):
        with self._changed:
            self._changed.wait_for(lambda: self._under_way == 0, grace)
        super().close()

    def _send(self, calls):
        for call, request in calls:
            self._send_one(call, request)

    def _send_one(self, call, request):
        with self._changed:
            self._under_way += 1
        method = getattr(self._stub, _METHODS[call.kind])
        future = method.future(request, timeout=self._patience, metadata=self._metadata)
        future.add_done_callback(lambda done: self._finished(call, done))

    def _finished(self, call, future):
        with self._changed:
            self._under_way -= 1
        try:
            self._settle(call, response=future.result())
        except grpc.RpcError as error:
            self._settle(call, error=error_from_rpc(error))
        except grpc.FutureCancelledError:
            self._settle(call, error=_closed())


class StreamLink(Link):
    """All calls on one DraftStream, whose sessions end with it. Calls have ids above 0, batches 0."""

    _END = object()

    def __init__(self, address: str, *args, **kwargs):
        super().__init__(address, *args, **kwargs)
        self._ids = itertools.count(1)
        self._waiting: dict[int, Call] = {}
        self._requests: queue.SimpleQueue = queue.SimpleQueue()
        self._call = self._stub.DraftStream(
            iter(self._requests.get, self._END), metadata=self._metadata
        )
        self._reader = threading.Thread(target=self._read, name="aerie-draft-stream", daemon=True)
        self._reader.start()

    def close(self, grace=0.0):
        if grace > 0:
            self._requests.put(self._END)  # Half-closes: the server answers what it has, and ends.
            self._reader.join(grace)
        self._call.cancel()
        super().close()

    def _send(self, calls):
        batch, size = draft_pb2.DraftStreamBatch(), 0
        for call, request in calls:
            number = next(self._ids)
            with self._changed:
                self._waiting[number] = call
            message = draft_pb2.DraftStreamRequest(id=number, **{call.kind: request})
            bytes_more = message.ByteSize() + _NESTING_BYTES
            if batch.requests and (
                len(batch.requests) == self._most_requests or size + bytes_more > self._most_bytes
            ):
                self._put(batch)
                batch, size = draft_pb2.DraftStreamBatch(), 0
            batch.requests.append(message)
            size += bytes_more
        self._put(batch)

    def _put(self, batch):
        if len(batch.requests) == 1:
            self._requests.put(batch.requests[0])
        elif batch.requests:
            self._requests.put(draft_pb2.DraftStreamRequest(batch=batch))

    def _read(self):
        failure: AerieError = Unavailable(
            grpc.StatusCode.UNAVAILABLE,
            "the stream has ended and its sessions with it; expected it to stay; open new sessions",
        )
        try:
            for response in self._call:
                with self._changed:
                    call = self._waiting.pop(response.id, None)
                if response.id == 0 and response.HasField("error"):
                    # A batch was refused whole; which of those under way it was is not said.
                    self._fail_all(error_from_detail(response.error))
                    continue
                if call is None:
                    continue  # Numbered by nobody here: a server's fault that hurts nobody.
                if response.HasField("error"):
                    self._settle(call, error=error_from_detail(response.error))
                else:
                    self._settle(call, response=getattr(response, call.kind))
        except grpc.RpcError as error:
            failure = error_from_rpc(error)
        with self._changed:
            self.failure = failure
        self._fail_all(failure)
        self._requests.put(self._END)  # Frees the thread in which gRPC reads requests.

    def _fail_all(self, error):
        with self._changed:
            waiting, self._waiting = self._waiting, {}
        for call in waiting.values():
            self._settle(call, error=error)


def _closed() -> Unavailable:
    return Unavailable(
        grpc.StatusCode.UNAVAILABLE,
        "the connection was closed under the call; expected an answer; ask on the next one",
    )
