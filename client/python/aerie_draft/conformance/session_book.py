"""Which sessions the strict server holds, and which of the others its worker knows to be gone."""

from __future__ import annotations

from aerie_draft.conformance.faults import unknown_session
from aerie_draft.conformance.report import Evidence
from aerie_draft.conformance.strict_session import StrictSession


class SessionBook:
    """Of one scenario. The strict server's lock guards it."""

    def __init__(self, evidence: Evidence, where: str):
        self._evidence = evidence
        self._where = where
        self._open: dict[str, StrictSession] = {}
        self._gone: set[str] = set()  # with their stream; the next call is told
        self._lost: set[str] = set()  # the worker was told that they are gone
        self._closed: set[str] = set()

    @property
    def any_lost(self) -> bool:
        return bool(self._lost)

    def open(self) -> list[StrictSession]:
        return list(self._open.values())

    def add(self, session: StrictSession) -> None:
        self._open[session.id] = session

    def get(self, name: str) -> StrictSession | None:
        return self._open.get(name)

    def find(self, name: str) -> StrictSession:
        """Raises Refusal for one that is not open, and notes it if the worker knew."""
        session = self._open.get(name)
        if session is not None:
            return session
        if name in self._closed:
            self._evidence.violated(
                "W-CLOSE",
                self._where,
                f"a call of session {name} after it was closed",
                "none",
                "open a new session for a new sequence",
            )
        elif name in self._gone:
            self._gone.discard(name)
            self._lost.add(name)
        elif name in self._lost:
            self._evidence.violated(
                "W-SESSION-LOST",
                self._where,
                f"a call of session {name} after NOT_FOUND",
                "none",
                "open a new session and send all rows, from row 0 or from where they begin",
            )
        raise unknown_session(name)

    def close(self, session: StrictSession) -> None:
        del self._open[session.id]
        self._closed.add(session.id)

    def forget(self, session: StrictSession) -> None:
        """As a restart does; the caller tells."""
        del self._open[session.id]
        self._lost.add(session.id)

    def end_with_stream(self, name: str) -> StrictSession | None:
        session = self._open.pop(name, None)
        if session is not None:
            self._gone.add(name)
        return session
