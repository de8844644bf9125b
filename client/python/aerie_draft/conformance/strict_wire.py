"""The strict service on a port: unary calls, streams, answers that are held back, and dying.

The port is kept while the server is down: a socket that is bound but does not listen stands by, so
that nobody else gets the port and workers find it closed.
"""

from __future__ import annotations

import queue
import socket
import threading
from concurrent import futures

import grpc

from aerie_draft._proto import draft_pb2, draft_pb2_grpc
from aerie_draft.conformance.report import Evidence
from aerie_draft.conformance.scenarios import Scenario
from aerie_draft.conformance.strict_server import StrictService
from aerie_draft.conformance.strict_session import BrokenConnection, Refusal, ServerDies

# Beyond it a deadline is none: gRPC tells calls without one that they have centuries.
_NO_DEADLINE = 10 * 365 * 86400.0
_THREADS = 64


class StrictWire(draft_pb2_grpc.DraftServiceServicer):
    """A context manager: listens from its beginning, and again at begin() after it died."""

    def __init__(self, service: StrictService, evidence: Evidence, listen: str, patience: float):
        """`patience`: seconds that an answer is held back before the worker is held to have no
        deadline."""
        self._service = service
        self._evidence = evidence
        self._patience = patience
        host, _, port = listen.rpartition(":")
        if not host or not port.isdigit():
            raise ValueError(
                f"--listen is {listen!r}; expected HOST:PORT, port 0 for a free one; give an "
                "address of this machine"
            )
        family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
        self._reserved = socket.socket(family, socket.SOCK_STREAM)
        self._reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._reserved.bind((host.strip("[]"), int(port)))
        self.address = f"{host}:{self._reserved.getsockname()[1]}"
        self._server: grpc.Server | None = None
        self._dying: threading.Thread | None = None
        self._start()

    def __enter__(self) -> StrictWire:
        return self

    def __exit__(self, *_):
        self._stop()
        self._reserved.close()

    def begin(self, scenario: Scenario) -> None:
        if self._dying is not None:
            self._dying.join()
            self._dying = None
        self._service.begin(scenario)
        if self._server is None:
            self._start()

    def _start(self) -> None:
        # Each stream and each answer that is held back takes a thread.
        self._server = grpc.server(
            futures.ThreadPoolExecutor(_THREADS),
            options=[
                ("grpc.so_reuseport", 1),
                # The service tells of the limit; a transport would break the connection.
                ("grpc.max_receive_message_length", 2 * self._service.limits.max_message_bytes),
            ],
        )
        draft_pb2_grpc.add_DraftServiceServicer_to_server(self, self._server)
        if self._server.add_insecure_port(self.address) == 0:
            raise OSError(f"cannot listen on {self.address}; expected a free port; give another")
        self._server.start()

    def _stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.stop(grace=None).wait()

    # The service.

    def GetServerInfo(self, request, context):
        return self._service.server_info()

    def OpenSession(self, request, context):
        return self._unary(context, lambda: self._service.open(request))

    def CloseSession(self, request, context):
        return self._unary(context, lambda: self._service.close(request))

    def Draft(self, request, context):
        self._evidence.saw("W-DEADLINE")
        left = context.time_remaining()
        if left is None or left > _NO_DEADLINE:
            self._evidence.violated(
                "W-DEADLINE",
                self._service.scenario.name,
                "a Draft call without a deadline",
                "one that is as long as a round may wait",
                "give the call a timeout: a drafter that hangs must not hang the target",
            )
        response, held = self._unary(context, lambda: self._service.draft(request))
        if held:
            gone = threading.Event()
            if context.add_callback(gone.set) and not gone.wait(self._patience):
                self._waited_too_long()
                self._service.answered_late(request.session_id)
        return response

    def _unary(self, context, serve):
        try:
            return serve()
        except Refusal as refusal:
            status = draft_pb2.StatusDetails(code=refusal.detail.code, message=str(refusal))
            status.details.add().Pack(refusal.detail)
            context.set_trailing_metadata(
                (
                    ("grpc-status-details-bin", status.SerializeToString()),
                    ("x-conformance", "an entry that nobody knows"),
                )
            )
            context.abort(refusal.code, str(refusal))
        except BrokenConnection:
            context.abort(grpc.StatusCode.UNAVAILABLE, "Connection reset by peer")
        except ServerDies:
            self._die(context)
            context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")

    def _die(self, context) -> None:
        gone = threading.Event()
        waits = context.add_callback(gone.set)
        if self._dying is None:
            self._dying = threading.Thread(target=self._stop)
            self._dying.start()
        if waits:
            gone.wait(self._patience)

    def _waited_too_long(self) -> None:
        self._evidence.violated(
            "W-DEADLINE",
            self._service.scenario.name,
            f"a worker that had waited {self._patience:g} s for one answer and still waited",
            "it to give up and decode without a draft",
            "give draft calls a deadline",
        )

    def DraftStream(self, request_iterator, context):
        return _Stream(self, context).run(request_iterator)


class _Stream:
    """One DraftStream. Its sessions end with it."""

    _END = object()

    def __init__(self, wire: StrictWire, context):
        self._wire = wire
        self._service: StrictService = wire._service
        self._context = context
        self._sessions: set[str] = set()
        self._incoming: queue.SimpleQueue = queue.SimpleQueue()
        # Answers held back, by session: they leave in front of that session's next one.
        self._held: dict[str, draft_pb2.DraftStreamResponse] = {}

    def run(self, request_iterator):
        threading.Thread(target=self._read, args=(request_iterator,), daemon=True).start()
        try:
            while True:
                try:
                    timeout = self._wire._patience if self._held else None
                    message = self._incoming.get(timeout=timeout)
                except queue.Empty:
                    self._wire._waited_too_long()
                    for name in self._held:
                        self._service.answered_late(name)
                    yield from self._take_held()
                    continue
                if message is self._END:
                    return
                yield from self._answer_message(message)
        finally:
            self._service.stream_ended(self._sessions)

    def _read(self, request_iterator):
        try:
            for request in request_iterator:
                self._incoming.put(request)
        except grpc.RpcError:
            pass  # The client has gone: the same end.
        except Exception:  # gRPC's own, when the server is stopped under it.
            pass
        self._incoming.put(self._END)

    def _take_held(self):
        held, self._held = self._held, {}
        return held.values()

    def _answer_message(self, message):
        if self._held:
            # Whoever sends on has given up waiting.
            self._wire._evidence.saw("W-DEADLINE")
            yield from self._take_held()
        if message.WhichOneof("request") != "batch":
            yield from self._answer(message)
            return
        count, most = len(message.batch.requests), self._service.limits.max_batch_requests
        if not 0 < count <= most:
            self._wire._evidence.violated(
                "W-CHUNK",
                self._service.scenario.name,
                f"a batch of {count} requests",
                f"1 to {most} of them (Limits.max_batch_requests)",
                "send the requests in several messages",
            )
            response = draft_pb2.DraftStreamResponse(id=message.id)
            response.error.code = grpc.StatusCode.INVALID_ARGUMENT.value[0]
            response.error.reason = "REQUEST_INVALID"
            response.error.message = f"a batch of {count}; expected 1 to {most}; send several"
            yield response
            return
        for request in message.batch.requests:
            yield from self._answer(request)

    def _answer(self, request):
        response = draft_pb2.DraftStreamResponse(id=request.id)
        kind = request.WhichOneof("request")
        try:
            if kind == "open_session":
                opened = self._service.open(request.open_session)
                self._sessions.add(opened.session_id)
                response.open_session.CopyFrom(opened)
            elif kind == "draft":
                drafted, held = self._service.draft(request.draft)
                response.draft.CopyFrom(drafted)
                if held:
                    self._held[request.draft.session_id] = response
                    return
            elif kind == "close_session":
                response.close_session.CopyFrom(self._service.close(request.close_session))
                self._sessions.discard(request.close_session.session_id)
            else:
                raise Refusal(
                    grpc.StatusCode.INVALID_ARGUMENT,
                    "REQUEST_INVALID",
                    "a stream request without a request; expected one of three; fill it in",
                )
        except Refusal as refusal:
            response.error.CopyFrom(refusal.detail)
        except BrokenConnection:
            self._context.abort(grpc.StatusCode.UNAVAILABLE, "Connection reset by peer")
        except ServerDies:
            self._wire._die(self._context)
            return
        yield response
