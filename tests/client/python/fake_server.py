"""A draft server for tests: the contract's session rules, a scripted drafter, scripted faults.

It speaks the real contract over a real port, so what a test sees is what a server would see.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from concurrent import futures

import grpc
from aerie_draft import DType
from aerie_draft._proto import draft_pb2, draft_pb2_grpc
from fake_session import as_tree, Session, judge

# Given the tokens of the rows (positions 1 ..) and k, the tokens to propose.
Drafter = Callable[[Sequence[int], int], Sequence[int]]


class Refusal(Exception):
    """Turned into a failed rpc or a stream's error, with an ErrorDetail."""

    def __init__(self, code: grpc.StatusCode, reason: str, **fields):
        self.code = code
        self.detail = draft_pb2.ErrorDetail(
            code=code.value[0],
            message=f"{reason} seen; expected not; mend it",
            reason=reason,
            **fields,
        )


class FakeServer(draft_pb2_grpc.DraftServiceServicer):
    """Start with start(); a context manager."""

    def __init__(self, drafter: Drafter = lambda tokens, k: [7] * k, **overrides):
        self.drafter = drafter
        self.limits = dict(
            max_k=8, max_rows_per_call=1000, max_message_bytes=1 << 20, max_sessions=9
        )
        self.limits.update(overrides)
        self.boundaries = [1, 2, 3]
        self.layers, self.hidden, self.vocab = 4, 8, 64
        self.protocol_version = 1
        self.dtypes, self.fc_digest = [1, 2, 3], ""
        self.sessions: dict[str, Session] = {}
        self.closed: list[Session] = []
        self.requests: list[draft_pb2.DraftRequest] = []
        self.opened: list[draft_pb2.OpenSessionRequest] = []
        # Of each call of its own: the method and the traceparent in its metadata, None without.
        self.traces: list[tuple[str, str | None]] = []
        self.batches: list[int] = []  # how many requests each brought
        self.final_tokens: list[list[int]] = []
        # What each call said of itself to a proxy, in order of arrival: (rpc, `aerie-session`).
        self.keys: list[tuple[str, str]] = []
        # Changes the options that an answer says are in force.
        self.bend_options: Callable[[draft_pb2.SessionOptions], None] = lambda options: None
        # Adds to an answer what a real server would tell beside the tokens.
        self.decorate: Callable[[draft_pb2.DraftResponse], None] = lambda response: None
        # Called with each request before it is served; may raise Refusal.
        self.before_draft: Callable[[draft_pb2.DraftRequest], None] = lambda request: None
        # Called after it was served, before the answer leaves.
        self.after_draft: Callable[[draft_pb2.DraftRequest], None] = lambda request: None
        self._names = (f"s{n}" for n in itertools.count(1))
        self._lock = threading.Lock()
        self._server: grpc.Server | None = None
        self.port = 0

    def __enter__(self) -> FakeServer:
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self) -> None:
        """Listens: on any free port the first time, on the same one after a stop()."""
        self._server = grpc.server(
            futures.ThreadPoolExecutor(4),
            options=[("grpc.max_receive_message_length", self.limits["max_message_bytes"])],
        )
        draft_pb2_grpc.add_DraftServiceServicer_to_server(self, self._server)
        self.port = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        assert self.port != 0
        self._server.start()

    def stop(self) -> None:
        """Dies: open calls break and all sessions are forgotten."""
        if self._server is not None:
            self._server.stop(grace=None).wait()
            self._server = None
        self.sessions.clear()

    def evict(self) -> None:
        """All sessions lose their rows to busier ones."""
        for session in self.sessions.values():
            session.tokens, session.rows, session.proposed = [], [], None
            session.evicted = True

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    # The service.

    def _note_key(self, rpc, context):
        with self._lock:
            self.keys += [
                (rpc, v) for k, v in context.invocation_metadata() if k == "aerie-session"
            ]

    def GetServerInfo(self, request, context):
        self._note_key("GetServerInfo", context)
        return self.server_info()

    def server_info(self):
        response = draft_pb2.GetServerInfoResponse(
            protocol_version=self.protocol_version, dtypes=self.dtypes, limits=self.limits
        )
        response.limits.session_lease.seconds = 600
        response.build.version = "0.0-fake"
        drafter = response.drafters.add(
            name="fake",
            target_num_layers=self.layers,
            target_hidden_size=self.hidden,
            vocab_size=self.vocab,
            draft_vocab_size=self.vocab,
            fc_digest=self.fc_digest,
        )
        for boundary in self.boundaries:
            drafter.captures.add(kind=draft_pb2.CAPTURE_KIND_BOUNDARY, boundary=boundary)
        drafter.settings.add(name="rope_theta", value="10000", source="config.json: rope_theta")
        return response

    def _note_trace(self, method, context):
        self.traces.append((method, dict(context.invocation_metadata()).get("traceparent")))

    def OpenSession(self, request, context):
        self._note_key("OpenSession", context)
        self._note_trace("OpenSession", context)
        return self._unary(context, self._open, request)

    def Draft(self, request, context):
        self._note_key("Draft", context)
        self._note_trace("Draft", context)
        return self._unary(context, self._draft, request)

    def CloseSession(self, request, context):
        self._note_key("CloseSession", context)
        self._note_trace("CloseSession", context)
        return self._unary(context, self._close, request)

    def DraftStream(self, request_iterator, context):
        self._note_key("DraftStream", context)
        handlers = {"open_session": self._open, "draft": self._draft, "close_session": self._close}
        for request in self._taken_apart(request_iterator):
            kind = request.WhichOneof("request")
            response = draft_pb2.DraftStreamResponse(id=request.id)
            try:
                getattr(response, kind).CopyFrom(handlers[kind](getattr(request, kind)))
            except Refusal as refusal:
                response.error.CopyFrom(refusal.detail)
            yield response

    def _taken_apart(self, messages):
        for message in messages:
            if message.WhichOneof("request") == "batch":
                assert len(message.batch.requests) <= self.limits["max_batch_requests"]
                self.batches.append(len(message.batch.requests))
                yield from message.batch.requests
            else:
                yield message

    def _unary(self, context, handler, request):
        try:
            return handler(request)
        except Refusal as refusal:
            status = draft_pb2.StatusDetails(
                code=refusal.code.value[0], message=refusal.detail.message
            )
            status.details.add().Pack(refusal.detail)
            context.set_trailing_metadata(
                (("grpc-status-details-bin", status.SerializeToString()),)
            )
            context.abort(refusal.code, refusal.detail.message)

    def _open(self, request):
        captured = [c.boundary for c in request.manifest.captures]
        if captured != self.boundaries:
            raise Refusal(
                grpc.StatusCode.FAILED_PRECONDITION,
                "MANIFEST_MISMATCH",
                mismatches=[
                    draft_pb2.FieldMismatch(
                        field="captures", expected=str(self.boundaries), received=str(captured)
                    )
                ],
            )
        fused = request.manifest.HasField("fused")
        width = len(captured) * request.manifest.hidden_size
        session = Session(
            request.manifest.fused.width if fused else width,
            request.manifest.dtype,
            request.start,
            fused=fused,
        )
        if request.HasField("fork"):
            parent = self._session(request.fork.session_id)
            session.tokens = parent.tokens[: request.fork.length]
            session.rows = parent.rows[: request.fork.length]
        response = draft_pb2.OpenSessionResponse(options=request.options, length=session.length)
        response.options.max_k = request.options.max_k or self.limits["max_k"]
        if request.options.HasField("sampling"):
            response.options.sampling.top_m = request.options.sampling.top_m or 64
        self.bend_options(response.options)
        session.options = response.options
        with self._lock:
            self.opened.append(request)
            response.session_id = next(self._names)
            self.sessions[response.session_id] = session
        response.lease.seconds = 600
        return response

    def _draft(self, request):
        with self._lock:
            self.requests.append(request)
        self.before_draft(request)
        response = self._serve(request)
        self.after_draft(request)
        return response

    def _serve(self, request):
        if request.WhichOneof("sequence") == "manifest":
            m = request.manifest
            session = Session(len(m.captures) * m.hidden_size, m.dtype)
        else:
            session = self._session(request.session_id)
        if request.seq and request.seq == session.seq:
            return session.stored
        if request.seq and request.seq < session.seq:
            raise Refusal(grpc.StatusCode.ABORTED, "SEQ_BEHIND")
        base, new = request.base_length - session.start, list(request.token_ids)
        if base > len(session.tokens):
            raise Refusal(
                grpc.StatusCode.FAILED_PRECONDITION,
                "EVICTED" if session.evicted else "BASE_LENGTH_AHEAD",
                resend_from=session.length,
            )
        if base < 0:
            raise Refusal(grpc.StatusCode.INVALID_ARGUMENT, "REQUEST_INVALID")
        session.evicted = False
        if len(new) > self.limits["max_rows_per_call"]:
            raise Refusal(grpc.StatusCode.INVALID_ARGUMENT, "TOO_MANY_ROWS")
        states = request.hidden_states
        row_bytes, data = DType(session.dtype).row_bytes(session.width), states.data
        like_session = (states.dtype, states.fused) == (session.dtype, session.fused)
        if len(data) != len(new) * row_bytes or not like_session:
            raise Refusal(grpc.StatusCode.INVALID_ARGUMENT, "BYTE_COUNT")
        session.tokens[base:] = new
        session.rows[base:] = [data[i * row_bytes : (i + 1) * row_bytes] for i in range(len(new))]
        response = draft_pb2.DraftResponse(seq=request.seq, length=session.length)
        accepted = judge(session, session.tokens)
        if accepted is not None:
            response.accepted = accepted
        tokens = list(self.drafter(session.tokens, request.k)) if request.k else []
        parents = list(range(len(tokens)))
        levels = list(parents)
        response.method = draft_pb2.PROPOSAL_METHOD_GREEDY_CHAIN
        if session.options is not None and session.options.HasField("tree"):
            tokens, parents = as_tree(tokens, request.k)
            levels = [i // 2 for i in range(len(tokens))]
            response.method = draft_pb2.PROPOSAL_METHOD_GREEDY_TREE
        response.tree.token_ids.extend(tokens)
        response.tree.parents.extend(parents)
        response.tree.log_probs.extend([-0.5] * len(tokens))
        response.tree.positions.extend(session.length + 1 + level for level in levels)
        response.timing.total.nanos = 250_000
        if request.k == 0:
            response.no_draft_reason = draft_pb2.NO_DRAFT_REASON_NOT_ASKED
        self.decorate(response)
        session.proposed = (len(session.tokens), tokens, parents) if tokens else None
        session.record.num_spec_tokens = max(session.record.num_spec_tokens, len(tokens))
        session.seq, session.stored = request.seq, response
        return response

    def _close(self, request):
        session = self._session(request.session_id)
        del self.sessions[request.session_id]
        self.final_tokens.append(list(request.final_token_ids))
        session.tokens += request.final_token_ids
        if request.final_token_ids:
            judge(session, session.tokens)
        self.closed.append(session)
        return draft_pb2.CloseSessionResponse(acceptance=session.record)

    def _session(self, name: str) -> Session:
        if name not in self.sessions:
            raise Refusal(grpc.StatusCode.NOT_FOUND, "SESSION_UNKNOWN")
        return self.sessions[name]
