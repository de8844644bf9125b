"""How messages reach the server: one rpc a call, or all calls of a client on one stream.

A `traceparent` goes along as metadata of the call; on a stream, which has metadata once for all of
its sessions, only the opening carries it, in its message.

Both raise AerieError only. What differs: a session opened on a stream belongs to that stream, so a
broken stream ends its sessions, while a session opened by its own rpc outlives a lost connection,
and a call of it may be repeated.
"""

from __future__ import annotations

import itertools
import queue
import re
import threading

import grpc

from aerie_draft._proto import draft_pb2, draft_pb2_grpc
from aerie_draft.errors import AerieError, DeadlineExceeded, Unavailable
from aerie_draft.errors import error_from_detail, error_from_rpc


_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[!-~]*)?")


class UnaryTransport:
    """One rpc a call. Any thread."""

    sessions_survive_reconnect = True

    def __init__(self, channel: grpc.Channel):
        self._stub = draft_pb2_grpc.DraftServiceStub(channel)

    def server_info(self, request, timeout):
        return _call(self._stub.GetServerInfo, request, timeout)

    def open_session(self, request, timeout):
        return _call(self._stub.OpenSession, request, timeout, request.traceparent)

    def draft(self, request, timeout, traceparent=""):
        return _call(self._stub.Draft, request, timeout, traceparent)

    def close_session(self, request, timeout, traceparent=""):
        return _call(self._stub.CloseSession, request, timeout, traceparent)

    def close(self):
        pass


class StreamTransport:
    """All calls on one DraftStream, opened by the first and again after it broke. Any thread."""

    sessions_survive_reconnect = False

    def __init__(self, channel: grpc.Channel):
        self._stub = draft_pb2_grpc.DraftServiceStub(channel)
        self._lock = threading.Lock()
        self._stream: _Stream | None = None

    def server_info(self, request, timeout):
        return _call(self._stub.GetServerInfo, request, timeout)

    def open_session(self, request, timeout):
        return self._exchange("open_session", request, timeout)

    def draft(self, request, timeout, traceparent=""):
        return self._exchange("draft", request, timeout)

    def close_session(self, request, timeout, traceparent=""):
        return self._exchange("close_session", request, timeout)

    def close(self):
        with self._lock:
            stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def _exchange(self, kind, request, timeout):
        with self._lock:
            if self._stream is None or self._stream.broken:
                self._stream = _Stream(self._stub)
            stream = self._stream
        return stream.exchange(kind, request, timeout)


class _Stream:
    """One DraftStream: a queue that gRPC reads requests from, a thread that hands out responses."""

    _END = object()

    def __init__(self, stub):
        self._requests: queue.SimpleQueue = queue.SimpleQueue()
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue] = {}
        self._failure: AerieError | None = None
        self._call = stub.DraftStream(iter(self._requests.get, self._END))
        self._reader = threading.Thread(target=self._read, name="aerie-draft-stream", daemon=True)
        self._reader.start()

    @property
    def broken(self) -> bool:
        with self._lock:
            return self._failure is not None

    def exchange(self, kind, request, timeout):
        message = draft_pb2.DraftStreamRequest(id=next(self._ids), **{kind: request})
        answer: queue.SimpleQueue = queue.SimpleQueue()
        with self._lock:
            if self._failure is not None:
                raise self._failure
            self._waiting[message.id] = answer
            self._requests.put(message)
        try:
            response = answer.get(timeout=timeout)
        except queue.Empty:
            with self._lock:
                self._waiting.pop(message.id, None)  # A late answer finds nobody and is dropped.
            raise DeadlineExceeded(
                grpc.StatusCode.DEADLINE_EXCEEDED,
                f"no answer on the stream within {timeout:.3f} s; expected one; decode this round "
                "without a draft or allow more time",
            ) from None
        if isinstance(response, AerieError):
            raise response
        if response.HasField("error"):
            raise error_from_detail(response.error)
        return getattr(response, kind)

    def close(self):
        """Half-closes and reads to the end; a server that does not end the stream is left."""
        self._requests.put(self._END)
        self._reader.join(timeout=2.0)
        self._call.cancel()

    def _read(self):
        failure: AerieError = Unavailable(
            grpc.StatusCode.UNAVAILABLE,
            "the stream has ended and its sessions with it; expected it to stay; open new sessions",
        )
        try:
            for response in self._call:
                with self._lock:
                    answer = self._waiting.pop(response.id, None)
                if answer is not None:
                    answer.put(response)
        except grpc.RpcError as error:
            failure = error_from_rpc(error)
        with self._lock:
            self._failure = failure
            waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            answer.put(failure)
        self._requests.put(self._END)  # Frees the thread in which gRPC reads requests.


def _call(method, request, timeout, traceparent=""):
    # One that cannot be read is left out, as whoever receives it has to: gRPC refuses whole calls
    # over metadata that it cannot send.
    metadata = [("traceparent", traceparent)] if _TRACEPARENT.fullmatch(traceparent) else None
    try:
        return method(request, timeout=timeout, metadata=metadata)
    except grpc.RpcError as error:
        raise error_from_rpc(error) from None
