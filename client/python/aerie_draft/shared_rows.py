"""How a client's rows get into its calls: through a shared memory segment that the server knows,
or, always possible, in the messages."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator

import grpc

from aerie_draft._proto import draft_pb2
from aerie_draft.errors import AerieError, ProtocolMismatch
from aerie_draft.shared_segment import SharedSegment

_log = logging.getLogger(__name__)
_GOODBYE_SECONDS = 0.2


class SharedRows:
    """The segment of one client. Any thread.

    Rows that find no room in it, and those of calls that the server refuses for where their rows
    are, go in the message. A server that was started anew gets a new segment; what fails once it
    has worked costs speed and nothing else, so rows go in messages then.
    """

    def __init__(self, transport, size: int):
        self._transport = transport
        self._size = size
        self._registering = threading.Lock()
        self._client = ""
        self._worked = False
        # None: rows go in messages. Replaced as a whole, so it needs no lock to be read.
        self._current: tuple[SharedSegment, str] | None = None

    def ensure(self, shared_memory: bool, client: str, timeout: float) -> None:
        """Registers a segment unless there is one.

        AerieError when that cannot be, until it has worked once: then it is only logged.

        Args:
            shared_memory: Whether the server lists it among its transports.
            client: Whose quota it counts against.
        """
        with self._registering:
            if self._current is not None:
                return
            self._client = client
            try:
                if not shared_memory:
                    raise ProtocolMismatch(
                        grpc.StatusCode.FAILED_PRECONDITION,
                        "the client's rows are to go through shared memory, which the server does "
                        "not list; expected a server with --shared-memory, reached over a Unix "
                        'socket or loopback; start it so, or use rows="inline"',
                        "SHARED_MEMORY_OFF",
                    )
                self._register(timeout)
            except AerieError as error:
                if not self._worked:
                    raise
                _log.warning("rows go in messages: %s", error)

    @contextlib.contextmanager
    def placed(self, request: draft_pb2.DraftRequest, data: bytes | memoryview) -> Iterator[bool]:
        """Puts `data` into `request`, which holds it until the end of the context.

        Yields whether it lies in shared memory.
        """
        current = self._current
        slot = current[0].put(data) if current is not None else None
        if slot is None:
            request.hidden_states.data = bytes(data)
            yield False
            return
        segment, segment_id = current
        shared = request.hidden_states.shared
        shared.segment_id = segment_id
        shared.offset, shared.length, shared.stamp = slot
        try:
            yield True
        finally:
            segment.free(slot)

    def send(
        self,
        request: draft_pb2.DraftRequest,
        data: bytes | memoryview,
        call: Callable[[], draft_pb2.DraftResponse],
        left: Callable[[], float],
    ) -> draft_pb2.DraftResponse:
        """What `call`, which sends `request`, answers once its rows are in it.

        Args:
            left: Tells the seconds that remain.
        """
        with self.placed(request, data) as shared:
            try:
                return call()
            except AerieError as error:
                if not shared or not error.reason.startswith("SHARED_MEMORY_"):
                    raise
                # The session stands as it was, so the same call goes again.
                self._drop(request.hidden_states.shared.segment_id, error, left)
                request.hidden_states.ClearField("shared")
                request.hidden_states.data = bytes(data)
                return call()

    def close(self) -> None:
        """Tells the server, without waiting long; one that does not hear of it sees the lock go."""
        with self._registering:
            current, self._current = self._current, None
        if current is None:
            return
        segment, segment_id = current
        request = draft_pb2.UnregisterSharedMemoryRequest(segment_id=segment_id)
        with contextlib.suppress(AerieError):
            self._transport.unregister_shared_memory(request, _GOODBYE_SECONDS)
        segment.close()

    def _register(self, timeout: float) -> None:
        try:
            segment = SharedSegment(self._size)
        except OSError as error:
            raise AerieError(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"a shared memory segment of {self._size} bytes cannot be made ({error}); expected "
                "room for it in /dev/shm; give the container a larger one, or ask for less "
                "(shared_memory_bytes)",
                "SHARED_MEMORY_ROOM",
            ) from None
        try:
            request = draft_pb2.RegisterSharedMemoryRequest(
                name=segment.name, key=segment.key, client=self._client
            )
            response = self._transport.register_shared_memory(request, timeout)
            segment.unlink()  # Nothing is left behind from here on, whoever dies.
        except BaseException:
            segment.close()
            raise
        self._current = segment, response.segment_id
        self._worked = True

    def _drop(self, segment_id: str, refusal: AerieError, left: Callable[[], float]) -> None:
        """No longer uses the segment; one that the server has lost is replaced.

        It is not closed: other threads may have rows in it. It goes with the last who holds it.
        """
        if refusal.reason == "SHARED_MEMORY_QUOTA":
            return  # Too many calls wait; the segment is as good as it was.
        with self._registering:
            if self._current is None or self._current[1] != segment_id:
                return  # Another thread has seen to it.
            self._current = None
            if refusal.reason != "SHARED_MEMORY_UNKNOWN":
                _log.warning("rows go in messages from now on: %s", refusal)
                return
            try:
                self._register(left())
            except AerieError as error:
                _log.warning("rows go in messages until a session opens: %s", error)
