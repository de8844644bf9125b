"""The faults of a scenario as they happen to calls, and whether the worker comes back from them."""

from __future__ import annotations

import time

import grpc

from aerie_draft.conformance.report import Evidence
from aerie_draft.conformance.scenarios import Fault, Scenario
from aerie_draft.conformance.strict_session import Refusal, ServerDies, StrictSession

RETRY_AFTER = 0.2  # seconds


class FaultScript:
    """The strict server's lock guards it."""

    def __init__(self, evidence: Evidence, comeback: float):
        """`comeback`: seconds without a call, after one that went wrong, that are too many."""
        self._evidence = evidence
        self._comeback = comeback

    def begin(self, scenario: Scenario) -> None:
        self._where = scenario.name
        self._faults = dict(scenario.faults)
        self._open_faults = dict(scenario.open_faults)
        self._calls = self._openings = 0
        # When a call went wrong or may be tried again, and none has come since.
        self._refused_at: float | None = None

    def opening(self) -> None:
        """Raises Refusal when this opening is to be refused."""
        self._openings += 1
        fault = self._open_faults.pop(self._openings, None)
        if fault is not None:
            self.went_wrong()
            raise refusal_of(fault)

    def drafting_call(self) -> None:
        """A call with k > 0 has come."""
        self._calls += 1
        if self._refused_at is not None:
            self._evidence.saw("W-COMES-BACK")
            self._refused_at = None

    def went_wrong(self, wait: float = 0.0) -> None:
        self._refused_at = time.monotonic() + wait

    def text_ends(self) -> None:
        """Had the worker the time to come back?"""
        if self._refused_at is None:
            return
        absent = time.monotonic() - self._refused_at
        if absent > self._comeback:
            self._evidence.violated(
                "W-COMES-BACK",
                self._where,
                f"no draft call in the {absent:.1f} s after one that went wrong",
                f"one within {self._comeback:g} s",
                "ask again from time to time; wait longer after each failure, up to some seconds",
            )

    def take(self, session: StrictSession) -> Fault | None:
        """The fault of this drafting call. Those that are told before anything changes are raised:
        Refusal, ServerDies. FORGET is the caller's."""
        fault = self._faults.pop(self._calls, None)
        if fault in (Fault.EVICT_ALL, Fault.EVICT_HALF):
            half = session.start + len(session.tokens) // 2
            row = session.start if fault is Fault.EVICT_ALL else half
            session.evict(row)
            raise Refusal(
                grpc.StatusCode.FAILED_PRECONDITION,
                "EVICTED",
                f"rows were evicted; expected them again; resend from row {row}",
                resend_from=row,
            )
        if fault in (Fault.DRAINING, Fault.FULL, Fault.UNKNOWN_REASON):
            wait = RETRY_AFTER if fault is Fault.FULL else 0.0
            self.went_wrong(wait)
            if fault is Fault.FULL:
                self._evidence.saw("W-RETRY-AFTER")
                session.not_before = time.monotonic() + wait
            raise refusal_of(fault)
        if fault is Fault.DIE:
            raise ServerDies
        return fault


def unknown_session(name: str) -> Refusal:
    return Refusal(
        grpc.StatusCode.NOT_FOUND,
        "SESSION_UNKNOWN",
        f"session {name} is not known here; expected an open one; open a new one and resend",
    )


def refusal_of(fault: Fault) -> Refusal:
    if fault is Fault.DRAINING:
        return Refusal(
            grpc.StatusCode.UNAVAILABLE,
            "DRAINING",
            "the server drains; expected a serving one; decode without drafts",
        )
    full, message = grpc.StatusCode.RESOURCE_EXHAUSTED, "full; expected room; decode without drafts"
    if fault is Fault.UNKNOWN_REASON:
        return Refusal(full, "MOON_PHASE", message)
    refusal = Refusal(full, "QUEUE_FULL", message)
    refusal.detail.retry_after.nanos = int(RETRY_AFTER * 1e9)
    return refusal
