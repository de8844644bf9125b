"""How messages reach the server: one rpc a call, or all calls of a client on one stream.

A `traceparent` goes along as metadata of the call; on a stream, which has metadata once for all of
its sessions, only the opening carries it, in its message.

Both raise AerieError only. What differs: a session opened on a stream belongs to that stream, so a
broken stream ends its sessions, while a session opened by its own rpc outlives a lost connection,
and a call of it may be repeated.

Behind a proxy, calls with equal `aerie-session` metadata come to one server. That is the session's
key for an rpc a call, and one key of the client's for all its streams, since a proxy cannot part a
stream.
"""

from __future__ import annotations

import itertools
import queue
import re
import secrets
import threading
from typing import NamedTuple

import grpc

from aerie_draft._proto import draft_pb2, draft_pb2_grpc
from aerie_draft.errors import AerieError, DeadlineExceeded, Unavailable
from aerie_draft.errors import error_from_detail, error_from_rpc


_KEY = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[!-~]*)?")


class CallMetadata(NamedTuple):
    """What a call says of itself beside its message."""

    key: str  # To a proxy: which server it must come to.
    traceparent: str = ""  # W3C's, of the request that it serves.

    def pairs(self) -> list[tuple[str, str]]:
        pairs = [("aerie-session", self.key)]
        # One that cannot be read is left out, as whoever receives it has to: gRPC refuses whole
        # calls over metadata that it cannot send.
        if _TRACEPARENT.fullmatch(self.traceparent):
            pairs.append(("traceparent", self.traceparent))
        return pairs


def new_session_key() -> str:
    """A key that nobody else has."""
    return secrets.token_hex(16)


def check_session_key(key: str) -> None:
    if not _KEY.fullmatch(key):
        raise ValueError(
            f"the session key is {key!r}; expected 1 to 64 letters, digits, dots, dashes or "
            "underscores, since it travels as metadata; shorten it, or give none"
        )


class UnaryTransport:
    """One rpc a call. Any thread."""

    sessions_survive_reconnect = True

    def __init__(self, channel: grpc.Channel):
        self._stub = draft_pb2_grpc.DraftServiceStub(channel)
        self._metadata = CallMetadata(new_session_key())

    def key_for(self, key: str | None) -> str:
        """The key of a session that is to have `key`; None: one of its own."""
        return new_session_key() if key is None else key

    def server_info(self, request, timeout):
        return _call(self._stub.GetServerInfo, request, timeout, self._metadata)

    def register_shared_memory(self, request, timeout):
        return _call(self._stub.RegisterSharedMemory, request, timeout, self._metadata)

    def unregister_shared_memory(self, request, timeout):
        return _call(self._stub.UnregisterSharedMemory, request, timeout, self._metadata)

    def open_session(self, request, timeout, metadata):
        return _call(self._stub.OpenSession, request, timeout, metadata)

    def draft(self, request, timeout, metadata=None):
        return _call(self._stub.Draft, request, timeout, metadata or self._metadata)

    def close_session(self, request, timeout, metadata):
        return _call(self._stub.CloseSession, request, timeout, metadata)

    def close(self):
        pass


class StreamTransport:
    """All calls on one DraftStream, opened by the first and again after it broke. Any thread."""

    sessions_survive_reconnect = False

    def __init__(self, channel: grpc.Channel):
        self._stub = draft_pb2_grpc.DraftServiceStub(channel)
        self._metadata = CallMetadata(new_session_key())
        self._lock = threading.Lock()
        self._stream: _Stream | None = None

    def key_for(self, key: str | None) -> str:
        """The stream's, whatever session it is for."""
        if key not in (None, self._metadata.key):
            raise ValueError(
                f"the session has the key {key!r}, but its client sends all sessions on one "
                "stream, which goes to one server; expected no key; give none, or use "
                'transport="unary"'
            )
        return self._metadata.key

    def server_info(self, request, timeout):
        # Its limits must be those of the server that has the stream.
        return _call(self._stub.GetServerInfo, request, timeout, self._metadata)

    # Of a segment too: it serves all sessions of the server, whatever way they came.
    def register_shared_memory(self, request, timeout):
        return _call(self._stub.RegisterSharedMemory, request, timeout, self._metadata)

    def unregister_shared_memory(self, request, timeout):
        return _call(self._stub.UnregisterSharedMemory, request, timeout, self._metadata)

    def open_session(self, request, timeout, metadata):
        return self._exchange("open_session", request, timeout)

    def draft(self, request, timeout, metadata=None):
        return self._exchange("draft", request, timeout)

    def close_session(self, request, timeout, metadata):
        return self._exchange("close_session", request, timeout)

    def close(self):
        with self._lock:
            stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def _exchange(self, kind, request, timeout):
        with self._lock:
            if self._stream is None or self._stream.broken:
                self._stream = _Stream(self._stub, self._metadata)
            stream = self._stream
        return stream.exchange(kind, request, timeout)


class _Stream:
    """One DraftStream: a queue that gRPC reads requests from, a thread that hands out responses."""

    _END = object()

    def __init__(self, stub, metadata):
        self._requests: queue.SimpleQueue = queue.SimpleQueue()
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue] = {}
        self._failure: AerieError | None = None
        self._call = stub.DraftStream(
            iter(self._requests.get, self._END), metadata=metadata.pairs()
        )
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


def _call(method, request, timeout, metadata):
    try:
        return method(request, timeout=timeout, metadata=metadata.pairs())
    except grpc.RpcError as error:
        raise error_from_rpc(error) from None
