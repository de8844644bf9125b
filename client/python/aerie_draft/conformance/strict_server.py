"""A draft server that plays a script and checks what its worker sends.

It is as strict as the contract and no stricter: whatever it refuses, a real server refuses too.
"""

from __future__ import annotations

import itertools
import threading

from aerie_draft._proto import draft_pb2
from aerie_draft.conformance.call_checks import CallChecks
from aerie_draft.conformance.faults import FaultScript, unknown_session
from aerie_draft.conformance.report import Evidence
from aerie_draft.conformance.row_checks import Pairing
from aerie_draft.conformance.scenarios import PLAIN, Fault, Scenario
from aerie_draft.conformance.session_book import SessionBook
from aerie_draft.conformance.shape import DrafterShape
from aerie_draft.conformance.strict_rounds import UNKNOWN_ENUM, Rounds
from aerie_draft.conformance.strict_session import (
    BrokenConnection,
    StrictSession,
    fingerprint,
)
from aerie_draft.conformance.text_checks import TextChecks
from aerie_draft.conformance.texts import Texts
from aerie_draft.values import common_prefix

# Of a call, beyond a round's max_k + 1. Few, so that prompts come in several calls; the same in all
# scenarios, since an engine that lives through them asks for limits once.
_SPARE_ROWS = 3
# Field 1000, a varint 1: in no version of the contract.
_UNKNOWN_FIELD = b"\xc0\x3e\x01"


class StrictService:
    """The answers, without the wire: `StrictWire` calls it. Any thread."""

    def __init__(
        self,
        shape: DrafterShape,
        evidence: Evidence,
        texts: Texts,
        *,
        max_k: int = 8,
        row_tolerance: float = 0.05,
        comeback: float = 10.0,
    ):
        self._shape = shape
        self._evidence = evidence
        self._lock = threading.RLock()
        self._names = (f"conformance-{n}" for n in itertools.count(1))
        self.limits = draft_pb2.Limits(
            max_k=max_k,
            max_rows_per_call=max_k + 1 + _SPARE_ROWS,
            max_message_bytes=64 << 20,
            max_sessions=64,
            max_context=1 << 20,
            max_batch_requests=64,
        )
        self.limits.session_lease.seconds = 600
        self._checks = CallChecks(shape, self.limits, evidence)
        self._texts = TextChecks(shape, evidence, texts, row_tolerance)
        self._rounds = Rounds(shape, evidence, texts, self._texts)
        self._script = FaultScript(evidence, comeback)
        self.begin(PLAIN)

    @property
    def pairing(self) -> Pairing:
        return self._rounds.pairing

    def begin(self, scenario: Scenario) -> None:
        with self._lock:
            self.scenario = scenario
            self._checks.where = self._texts.where = scenario.name
            self._texts.learning = scenario is PLAIN
            self._rounds.begin(scenario)
            self._script.begin(scenario)
            self._sessions = SessionBook(self._evidence, scenario.name)

    def end(self, failed: bool) -> None:
        """The worker has ended: what it left open, and sums over the scenario. One that `failed`
        had no chance to close anything."""
        with self._lock:
            died = failed or Fault.DIE in self.scenario.faults.values()
            for session in self._sessions.open():
                if self._texts.learning:
                    self._rounds.learn(session, session.tokens)
                if session.calls and not died:
                    self._violated(
                        "W-CLOSE",
                        f"session {session.id} with {session.length} rows was open when the "
                        "worker had ended",
                        "a CloseSession when its sequence ends",
                        "close it on every way out, errors too",
                    )
            self._rounds.end()

    def open_sessions(self) -> int:
        with self._lock:
            return sum(1 for session in self._sessions.open() if session.calls)

    def stream_ended(self, ids: set[str]) -> None:
        with self._lock:
            for name in ids:
                session = self._sessions.end_with_stream(name)
                if session is None:
                    continue
                self._evidence.saw("W-CLOSE")
                if self._texts.learning:
                    self._rounds.learn(session, session.tokens)

    def server_info(self) -> draft_pb2.GetServerInfoResponse:
        with self._lock:
            response = self._shape.info(self.limits)
            if self.scenario.newer:
                response.dtypes.append(UNKNOWN_ENUM)
                response.transports.append(UNKNOWN_ENUM)
            return self._from_newer(response)

    def open(self, request: draft_pb2.OpenSessionRequest) -> draft_pb2.OpenSessionResponse:
        with self._lock:
            self._checks.manifest(request.manifest)
            self._script.opening()
            options = draft_pb2.SessionOptions()
            options.CopyFrom(request.options)
            options.max_k = min(request.options.max_k or self.limits.max_k, self.limits.max_k)
            if options.HasField("sampling") and not options.sampling.top_m:
                options.sampling.top_m = 2
            session = StrictSession(
                next(self._names), request.manifest, options, request.start, told=request.start
            )
            if request.HasField("fork"):
                session.begin_as(self._sessions.find(request.fork.session_id), request.fork.length)
            self._sessions.add(session)
            response = draft_pb2.OpenSessionResponse(
                session_id=session.id, options=options, length=session.length
            )
            response.lease.seconds = 600
            return self._from_newer(response)

    def close(self, request: draft_pb2.CloseSessionRequest) -> draft_pb2.CloseSessionResponse:
        with self._lock:
            session = self._sessions.find(request.session_id)
            self._evidence.saw("W-CLOSE")
            self._script.text_ends()
            full = session.tokens + list(request.final_token_ids)
            self._rounds.final_tokens(session, full)
            self._rounds.judge(session, full, None)
            if self._texts.learning:
                self._rounds.learn(session, full)
            self._sessions.close(session)
            return self._from_newer(draft_pb2.CloseSessionResponse(acceptance=session.record))

    def draft(self, request: draft_pb2.DraftRequest) -> tuple[draft_pb2.DraftResponse, bool]:
        """The answer, and whether it is to be held back. Raises Refusal, BrokenConnection,
        ServerDies."""
        with self._lock:
            if request.k:
                self._script.drafting_call()
            if request.WhichOneof("sequence") == "manifest":
                self._checks.manifest(request.manifest)
                options = draft_pb2.SessionOptions(max_k=self.limits.max_k)
                session = StrictSession("", request.manifest, options)
            else:
                session = self._sessions.find(request.session_id)
            if request.seq:
                self._evidence.saw("W-SEQ")
                if session.seq == request.seq:
                    return self._repeat(session, request), False
                self._checks.order(request, session)
            self._checks.shape(request, session)
            if session.full:
                return self._from_newer(self._rounds.past_context(session, request)), False
            resent = session.resend_from is not None
            if not session.calls:
                self._checks.beginning(request, session, self._sessions.any_lost)
            self._checks.base(request, session)
            fault = self._script.take(session) if request.k else None
            if fault is Fault.FORGET:
                self._sessions.forget(session)
                raise unknown_session(session.id)
            return self._serve(session, request, resent, fault)

    def answered_late(self, name: str) -> None:
        """An answer that was held back went to a worker that still waited."""
        with self._lock:
            session = self._sessions.get(name)
            if session is not None:
                session.answered()

    def _violated(self, rule: str, seen: str, expected: str, remedy: str) -> None:
        self._evidence.violated(rule, self.scenario.name, seen, expected, remedy)

    def _repeat(self, session: StrictSession, request) -> draft_pb2.DraftResponse:
        self._evidence.saw("W-SEQ-RETRY")
        if fingerprint(request) != session.stored_call:
            self._violated(
                "W-SEQ-RETRY",
                f"seq {request.seq} twice, for {len(session.stored_call[1])} rows from row "
                f"{session.stored_call[0]} and then for {len(request.token_ids)} from row "
                f"{request.base_length}, not the same call",
                "a number to stand for one call",
                "repeat a call as it was, or number it anew",
            )
        session.answered()
        return session.stored

    def _serve(self, session: StrictSession, request, resent: bool, fault: Fault | None):
        base, new = request.base_length, list(request.token_ids)
        session.calls += 1
        self._texts.text(session, base, new, resent)
        self._texts.rows(request, session, base)
        full = session.tokens_before(base) + new
        if session.planned is not None:
            stood_on = session.tokens[: session.planned.at - session.start]
            if common_prefix(full, stood_on) < min(len(full), len(stood_on)):
                session.planned = None  # Tokens that it stood on were taken back.
        response = draft_pb2.DraftResponse(seq=request.seq)
        kept = self._rounds.judge(session, full, request)
        if kept is not None:
            response.accepted = kept
        if fault is Fault.CONTEXT_LIMIT:
            session.full = True
            return self._from_newer(self._rounds.past_context(session, request)), False
        session.commit(base, new, request.hidden_states.data)
        response.length = session.length
        self._rounds.propose(session, request.k, response)
        if session.id == "" and self._texts.learning:
            self._rounds.learn(session, session.tokens)
        self._from_newer(response)
        session.store(request, response)
        if fault not in (Fault.LOSE_ANSWER, Fault.HOLD):
            session.told = session.length
            return response, False
        self._script.went_wrong()
        if session.planned is not None:
            session.planned.delivered = False
        if fault is Fault.LOSE_ANSWER:
            raise BrokenConnection
        session.held_back = True
        return response, True

    def _from_newer(self, message):
        """A message as a server of a later version might send it."""
        if self.scenario.newer:
            self._evidence.saw("W-NEWER-SERVER")
            message.MergeFromString(_UNKNOWN_FIELD)
        return message
