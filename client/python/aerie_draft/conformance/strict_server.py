"""A draft server that plays a script and checks what its worker sends.

It drafts from the worker's own text (`texts`), so it knows beforehand what has to be kept, and it
misbehaves by the scenario's script. It is as strict as the contract and no stricter: whatever it
refuses, a real server refuses too.
"""

from __future__ import annotations

import itertools
import threading
import time

import grpc

from aerie_draft._proto import draft_pb2
from aerie_draft.conformance.call_checks import CallChecks
from aerie_draft.conformance.proposals import Planned, fill_tree, plan, wanted_right
from aerie_draft.conformance.report import Evidence
from aerie_draft.conformance.row_checks import Pairing, decode
from aerie_draft.conformance.scenarios import PLAIN, Fault, Scenario
from aerie_draft.conformance.shape import DrafterShape
from aerie_draft.conformance.strict_session import (
    BrokenConnection,
    Refusal,
    ServerDies,
    StrictSession,
    fingerprint,
)
from aerie_draft.conformance.texts import Texts
from aerie_draft.values import common_prefix

RETRY_AFTER = 0.2  # seconds
# Field 1000, a varint 1: in no version of the contract.
_UNKNOWN_FIELD = b"\xc0\x3e\x01"
_UNKNOWN_ENUM = 99


class StrictService:
    """The answers, without the wire: `StrictWire` calls it. Any thread."""

    def __init__(
        self, shape: DrafterShape, evidence: Evidence, texts: Texts, *, max_k: int = 8,
        row_tolerance: float = 0.05, comeback: float = 10.0,
    ):
        """`comeback`: seconds without a call, after one that went wrong, that are too many."""
        self._comeback = comeback
        self._shape = shape
        self._evidence = evidence
        self._texts = texts
        self._lock = threading.RLock()
        self._names = (f"conformance-{n}" for n in itertools.count(1))
        self._usual_rows = 512
        self.limits = draft_pb2.Limits(
            max_k=max_k, max_rows_per_call=self._usual_rows, max_message_bytes=64 << 20,
            max_sessions=64, max_context=1 << 20,
        )
        self.limits.session_lease.seconds = 600
        self._checks = CallChecks(shape, self.limits, evidence, texts, row_tolerance)
        self.pairing = Pairing()
        self.begin(PLAIN)

    # The script.

    def begin(self, scenario: Scenario) -> None:
        with self._lock:
            self.scenario = scenario
            self._faults = dict(scenario.faults)
            self._open_faults = dict(scenario.open_faults)
            self.limits.max_rows_per_call = scenario.rows_per_call or self._usual_rows
            self._checks.where = scenario.name
            self._checks.learning = scenario is PLAIN
            self._sessions: dict[str, StrictSession] = {}
            self._gone: set[str] = set()  # with their stream; the next call is told
            self._lost: set[str] = set()  # the worker was told that they are gone
            self._closed: set[str] = set()
            self._drafting_calls = self._openings = self._proposals = 0
            # When a call went wrong or may be tried again, and none was served since.
            self._refused_at: float | None = None
            self._kept, self._not_kept = 0, 0  # proposals with right tokens

    def end(self, failed: bool) -> None:
        """The worker has ended: what it left open, and sums over the scenario. One that `failed`
        had no chance to close anything."""
        with self._lock:
            scenario = self.scenario
            for session in self._sessions.values():
                if self._checks.learning:
                    self._learn(session, session.tokens)
                died = failed or Fault.DIE in scenario.faults.values()
                if session.calls and not died:
                    self._evidence.violated(
                        "W-CLOSE", scenario.name,
                        f"session {session.id} with {session.length} rows was open when the "
                        "worker had ended", "a CloseSession when its sequence ends",
                        "close it on every way out, errors too",
                    )
            if scenario.name == "drafts" and self._not_kept > self._kept:
                self._evidence.violated(
                    "W-VERIFY", scenario.name,
                    f"{self._not_kept} of {self._kept + self._not_kept} proposals began with "
                    "tokens of the worker's own text that it did not keep",
                    "them to be kept", "verify draft token i against the target's choice behind "
                    "draft token i - 1, the first one behind the newest token",
                )

    def open_sessions(self) -> int:
        with self._lock:
            return sum(1 for session in self._sessions.values() if session.calls)

    def stream_ended(self, ids: set[str]) -> None:
        with self._lock:
            for name in ids:
                session = self._sessions.pop(name, None)
                if session is None:
                    continue
                self._evidence.saw("W-CLOSE")
                if self._checks.learning:
                    self._learn(session, session.tokens)
                self._gone.add(name)

    # The calls.

    def server_info(self) -> draft_pb2.GetServerInfoResponse:
        with self._lock:
            shape = self._shape
            response = draft_pb2.GetServerInfoResponse(
                protocol_version=1, dtypes=[1, 2, 3], transports=[1], limits=self.limits
            )
            response.build.version = "conformance"
            drafter = response.drafters.add(
                name="conformance",
                version="script",
                target_num_layers=shape.num_layers,
                target_hidden_size=shape.hidden_size,
                vocab_size=shape.vocab_size,
                draft_vocab_size=shape.vocab_size,
                hidden_size=shape.hidden_size,
            )
            for capture in shape.captures:
                drafter.captures.add(kind=capture.kind.value, boundary=capture.boundary)
            if self.scenario.newer:
                response.dtypes.append(_UNKNOWN_ENUM)
                response.transports.append(_UNKNOWN_ENUM)
            return self._from_newer(response)

    def open(self, request: draft_pb2.OpenSessionRequest, on_stream: bool):
        with self._lock:
            self._openings += 1
            fault = self._open_faults.pop(self._openings, None)
            self._checks.manifest(request.manifest)
            if fault is not None:
                self._refused_at = time.monotonic()
                raise _refusal(fault)
            session = StrictSession(
                next(self._names), request.manifest, draft_pb2.SessionOptions(), request.start,
                on_stream, told=request.start,
            )
            session.options.CopyFrom(request.options)
            session.options.max_k = min(
                request.options.max_k or self.limits.max_k, self.limits.max_k
            )
            if request.options.HasField("sampling") and not request.options.sampling.top_m:
                session.options.sampling.top_m = 2
            if request.HasField("fork"):
                self._begin_as_fork(session, request.fork)
            self._sessions[session.id] = session
            response = draft_pb2.OpenSessionResponse(
                session_id=session.id, options=session.options, length=session.length
            )
            response.lease.seconds = 600
            return self._from_newer(response)

    def _begin_as_fork(self, session: StrictSession, fork: draft_pb2.Fork) -> None:
        parent = self._find(fork.session_id)
        session.start = parent.start
        session.tokens = parent.tokens_before(fork.length)
        session.rows = parent.rows[: len(session.tokens)]
        session.told = session.length

    def close(self, request: draft_pb2.CloseSessionRequest):
        with self._lock:
            session = self._find(request.session_id)
            self._evidence.saw("W-CLOSE")
            self._note_absence()
            full = session.tokens + list(request.final_token_ids)
            planned = session.planned
            whole = session.resend_from is None and not session.diverged
            if whole and planned is not None and planned.delivered:
                self._evidence.saw("W-FINAL-TOKENS")
                text, shared = self._texts.nearest(full, session.start)
                known = text[session.start :]
                if len(full) == len(session.tokens) and len(known) > len(full):
                    self._checks_violated_final("no tokens behind the last proposal")
                elif shared < min(len(full), len(known)):
                    self._checks_violated_final(
                        f"final token {full[shared]} where the text has {known[shared]}"
                    )
            self._judge(session, full, None)
            if self._checks.learning:
                self._learn(session, full)
            del self._sessions[session.id]
            self._closed.add(session.id)
            return self._from_newer(draft_pb2.CloseSessionResponse(acceptance=session.record))

    def _checks_violated_final(self, seen: str) -> None:
        self._evidence.violated(
            "W-FINAL-TOKENS", self.scenario.name, f"a close that brings {seen}",
            "the tokens committed since the last Draft call, once",
            "give them as final_token_ids; they need no states",
        )

    def draft(self, request: draft_pb2.DraftRequest):
        """(response, whether it is to be held back). Raises Refusal, BrokenConnection, ServerDies."""
        with self._lock:
            if request.k:
                self._drafting_calls += 1
                self._came_back()
            if request.WhichOneof("sequence") == "manifest":
                self._checks.manifest(request.manifest)
                options = draft_pb2.SessionOptions(max_k=self.limits.max_k)
                session = StrictSession("", request.manifest, options)
            else:
                session = self._find(request.session_id)
            if request.seq:
                self._evidence.saw("W-SEQ")
                if session.seq == request.seq:
                    return self._repeat(session, request), False
                if request.seq < session.seq:
                    self._evidence.violated(
                        "W-SEQ", self.scenario.name,
                        f"seq {request.seq} behind seq {session.seq}", "growing numbers",
                        "number the calls of a session one after the other",
                    )
                    raise Refusal(
                        grpc.StatusCode.ABORTED, "SEQ_BEHIND", f"seq {request.seq} was overtaken"
                    )
            self._checks.shape(request, session)
            if session.full:
                return self._past_context(session, request), False
            resent = session.resend_from is not None
            self._check_beginning(session, request)
            self._checks.base(request, session)
            fault = self._take_fault(session, request)
            return self._serve(session, request, resent, fault)

    def _take_fault(self, session, request) -> Fault | None:
        """The fault of this call, if it is one that is told before anything changes."""
        fault = self._faults.pop(self._drafting_calls, None) if request.k else None
        if fault in (Fault.EVICT_ALL, Fault.EVICT_HALF):
            half = session.start + len(session.tokens) // 2
            row = session.start if fault is Fault.EVICT_ALL else half
            session.evicted = list(session.tokens)
            session.drop_from(row)
            session.resend_from = session.told = row
            raise Refusal(
                grpc.StatusCode.FAILED_PRECONDITION, "EVICTED",
                f"rows were evicted; expected them again; resend from row {row}", resend_from=row,
            )
        if fault is Fault.FORGET:
            del self._sessions[session.id]
            self._lost.add(session.id)
            raise _unknown(session.id)
        if fault in (Fault.DRAINING, Fault.FULL, Fault.UNKNOWN_REASON):
            self._refused_at = time.monotonic()
            if fault is Fault.FULL:
                self._evidence.saw("W-RETRY-AFTER")
                session.not_before = self._refused_at = self._refused_at + RETRY_AFTER
            raise _refusal(fault)
        if fault is Fault.DIE:
            raise ServerDies
        return fault

    def _repeat(self, session: StrictSession, request):
        self._evidence.saw("W-SEQ-RETRY")
        if fingerprint(request) != session.stored_call:
            self._evidence.violated(
                "W-SEQ-RETRY", self.scenario.name,
                f"seq {request.seq} twice, for {len(session.stored_call[1])} rows from row "
                f"{session.stored_call[0]} and then for {len(request.token_ids)} from row "
                f"{request.base_length}, not the same call",
                "a number to stand for one call", "repeat a call as it was, or number it anew",
            )
        session.told = session.length
        if session.planned is not None:
            session.planned.delivered = True
        return session.stored

    def _came_back(self) -> None:
        if self._refused_at is not None:
            self._evidence.saw("W-COMES-BACK")
            self._refused_at = None

    def _note_absence(self) -> None:
        """The worker's text ends here: did it have the time to come back?"""
        if self._refused_at is None:
            return
        absent = time.monotonic() - self._refused_at
        if absent > self._comeback:
            self._evidence.violated(
                "W-COMES-BACK", self.scenario.name,
                f"no draft call in the {absent:.1f} s after one that went wrong",
                f"one within {self._comeback:g} s",
                "ask again from time to time; wait longer after each failure, up to some seconds",
            )

    def _serve(self, session: StrictSession, request, resent: bool, fault: Fault | None):
        base, new = request.base_length, list(request.token_ids)
        session.calls += 1
        self._checks.text(session, base, new, resent)
        self._checks.rows(request, session, base)
        full = session.tokens_before(base) + new
        planned = session.planned
        if planned is not None:
            stood_on = session.tokens[: planned.at - session.start]
            if common_prefix(full, stood_on) < min(len(full), len(stood_on)):
                session.planned = None  # Tokens that it stood on were taken back.
        after_hold, session.held_back = session.held_back, False
        response = draft_pb2.DraftResponse(seq=request.seq)
        kept = self._judge(session, full, request)
        if kept is not None:
            response.accepted = kept
        if fault is Fault.CONTEXT_LIMIT:
            session.full = True
            return self._past_context(session, request), False
        session.commit(base, new, request.hidden_states.data)
        response.length = session.length
        self._propose(session, request, response, after_hold)
        if session.id == "" and self._checks.learning:
            self._learn(session, session.tokens)
        self._from_newer(response)
        session.seq, session.stored = request.seq, response
        session.stored_call = fingerprint(request)
        if fault in (Fault.LOSE_ANSWER, Fault.HOLD):
            self._refused_at = time.monotonic()
            if session.planned is not None:
                session.planned.delivered = False
            session.held_back = fault is Fault.HOLD
            if fault is Fault.LOSE_ANSWER:
                raise BrokenConnection
            return response, True
        session.told = session.length
        return response, False

    def answered_late(self, name: str) -> None:
        """An answer that was held back went to a worker that still waited."""
        with self._lock:
            session = self._sessions.get(name)
            if session is not None:
                session.told = session.length
                session.held_back = False
                if session.planned is not None:
                    session.planned.delivered = True

    def _past_context(self, session: StrictSession, request):
        """As a real server's: no rows are taken any more, and where calls begin is no matter."""
        self._evidence.saw("W-CONTEXT-LIMIT")
        session.planned = None
        return self._from_newer(
            draft_pb2.DraftResponse(
                seq=request.seq, length=session.length,
                no_draft_reason=draft_pb2.NO_DRAFT_REASON_CONTEXT_LIMIT,
            )
        )

    def _check_beginning(self, session: StrictSession, request) -> None:
        """A new session holds nothing, also when it stands for one that was lost."""
        if session.calls:
            return
        if self._lost:
            self._evidence.saw("W-SESSION-LOST")
        if request.base_length > session.length:
            self._evidence.violated(
                "W-SESSION-LOST" if self._lost else "W-BASE", self.scenario.name,
                f"a new session of {session.length} rows whose first call begins at row "
                f"{request.base_length}", f"base_length {session.length}",
                "send a new session all rows, or open it with `start`",
            )

    def _propose(self, session, request, response, after_hold: bool) -> None:
        if not request.k:
            response.no_draft_reason = draft_pb2.NO_DRAFT_REASON_NOT_ASKED
            return
        scenario, k = self.scenario, request.k
        count = right = 0
        if scenario.right:
            how = scenario.right[self._proposals % len(scenario.right)]
            count, right = k, wanted_right(how, k)
            if scenario.short:
                count = (k // 2, max(k - 1, 1), 0, 1)[self._proposals % 4]
                if k > 1:
                    self._evidence.saw("W-SHORT-DRAFT")
            self._proposals += 1
        rest = self._texts.continuation(session.tokens, session.start)
        tree = session.options.tree if session.options.HasField("tree") else None
        planned = plan(session.length, rest, count, right, self._shape.vocab_size, tree)
        planned.after_hold = after_hold
        fill_tree(planned, session.options, response)
        if len(planned.tokens) < k and tree is None:
            response.no_draft_reason = draft_pb2.NO_DRAFT_REASON_DEADLINE
        if scenario.newer and not planned.tokens:
            response.no_draft_reason = _UNKNOWN_ENUM
        if session.options.adaptive_k:
            response.k_choice.k = len(planned.tokens)
        record = session.record
        record.num_spec_tokens = max(record.num_spec_tokens, len(planned.tokens))
        session.planned = planned if planned.tokens else None

    def _judge(self, session: StrictSession, full: list[int], request) -> int | None:
        judged = session.judge(full)
        if not session.diverged:
            self._checks.outcome(request, judged)
        if judged is None:
            return None
        planned, kept = judged
        rest = self._texts.continuation(full[: planned.at - session.start], session.start)
        # At the end of the text the worker may have room for fewer tokens.
        if planned.right and len(rest) > planned.right and not session.diverged:
            whole = kept >= planned.right
            if self.scenario.name == "drafts":
                self._evidence.saw("W-VERIFY")
                self._kept, self._not_kept = self._kept + whole, self._not_kept + (not whole)
            if planned.after_hold:
                self._evidence.saw("W-LATE-DRAFT")
                if not whole:
                    self._evidence.violated(
                        "W-LATE-DRAFT", self.scenario.name,
                        f"{kept} of {planned.right} right tokens were kept of the proposal behind "
                        "one that came late", "all of them: the late answer belongs to no call "
                        "that still waits", "match answers by id, and drop those nobody waits for",
                    )
        return kept

    def _learn(self, session: StrictSession, tokens: list[int]) -> None:
        if session.start == 0 and tokens:
            self._texts.learn(tokens)
        if not session.rows:
            return
        width = self._shape.hidden_size
        rows = decode(b"".join(session.rows), session.manifest.dtype, self._shape.row_width)
        lowest = self._shape.lowest
        self.pairing.add(session.tokens, rows[:, lowest * width : (lowest + 1) * width])
        session.rows = []

    def _find(self, name: str) -> StrictSession:
        session = self._sessions.get(name)
        if session is not None:
            return session
        if name in self._closed:
            self._evidence.violated(
                "W-CLOSE", self.scenario.name, f"a call of session {name} after it was closed",
                "none", "open a new session for a new sequence",
            )
        elif name in self._gone:
            self._gone.discard(name)
            self._lost.add(name)
        elif name in self._lost:
            self._evidence.violated(
                "W-SESSION-LOST", self.scenario.name,
                f"a call of session {name} after NOT_FOUND", "none",
                "open a new session and send all rows, from row 0 or from where they begin",
            )
        raise _unknown(name)

    def _from_newer(self, message):
        """A message as a server of a later version might send it."""
        if self.scenario.newer:
            self._evidence.saw("W-NEWER-SERVER")
            message.MergeFromString(_UNKNOWN_FIELD)
        return message


def _unknown(name: str) -> Refusal:
    return Refusal(
        grpc.StatusCode.NOT_FOUND, "SESSION_UNKNOWN",
        f"session {name} is not known here; expected an open one; open a new one and resend",
    )


def _refusal(fault: Fault) -> Refusal:
    if fault is Fault.DRAINING:
        return Refusal(
            grpc.StatusCode.UNAVAILABLE, "DRAINING",
            "the server drains; expected a serving one; decode without drafts",
        )
    full, message = grpc.StatusCode.RESOURCE_EXHAUSTED, "full; expected room; decode without drafts"
    if fault is Fault.UNKNOWN_REASON:
        return Refusal(full, "MOON_PHASE", message)
    refusal = Refusal(full, "QUEUE_FULL", message)
    refusal.detail.retry_after.nanos = int(RETRY_AFTER * 1e9)
    return refusal
