"""Drafts for all requests of an engine round in one message, within one deadline, come what may.

An engine round never fails and never waits longer than the deadline because of the draft server:
what has not answered by then is left under way, and taken over by a later round. After a failure
the connection says when to ask again; sessions are then opened anew with the rows that are kept.

A request is new to the server once: its session is opened in one exchange and drafted for in the
next, within the same deadline. All other requests need one exchange a round.
"""

from __future__ import annotations

import collections
import logging
import time
from collections.abc import Callable, Iterable, Sequence

from aerie_draft._proto import draft_pb2
from aerie_draft.errors import (
    AerieError,
    DeadlineExceeded,
    Overloaded,
    Overtaken,
    ResyncNeeded,
    SessionUnknown,
    Unavailable,
)
from aerie_draft.vllm.admission import Plan
from aerie_draft.vllm.connection import Connection, late, patience_of, silent
from aerie_draft.vllm.link import Call
from aerie_draft.vllm.request_state import NewRows, RequestState
from aerie_draft.vllm.settings import Settings

_LOG = logging.getLogger("aerie_draft.vllm")
# A resend can itself be told to resend, but a server that never has enough is broken.
_MOST_RESYNCS = 3
# How long a request goes without drafts after a refusal that repeating it would not cure.
_REFUSAL_WAIT = 5.0


class BatchDrafter:
    """One thread: the engine's. `connection` is this drafter's own."""

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        connection: Connection,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._plan = plan
        self._settings = settings
        self._connection = connection
        self._clock = clock
        self._states: dict[str, RequestState] = {}
        self._leaving: list[RequestState] = []
        self._broken_until = -float("inf")
        # What happened, by name: drafted, missed (asked for, none came), late, resync, hole.
        self.counts: collections.Counter[str] = collections.Counter()

    def round(self, news: Sequence[NewRows]) -> list[list[int]]:
        """Of each request the tokens to verify; none where there is no draft."""
        end = self._clock() + self._settings.deadline
        states = [self._take(new) for new in news]
        self._tend()
        now = self._clock()
        asking = [
            (state, new.k)
            for state, new in zip(states, news, strict=True)
            if state.call is None and not state.full and not state.ending and now >= state.ask_after
        ]
        drafts: dict[str, list[int]] = {}
        if asking and self._connection.is_up(end):
            self._exchange(dict(asking), end, drafts)
        for state in states:
            state.let_go(server_is_there=self._connection.link is not None)
        self.counts["drafted"] += len(drafts)
        self.counts["missed"] += sum(
            new.k > 0 and not new.ending and new.request_id not in drafts for new in news
        )
        return [drafts.get(new.request_id, []) for new in news]

    def leave(self, request_ids: Iterable[str]) -> None:
        """These requests are over, finished or aborted. Waits for nothing."""
        for request_id in request_ids:
            state = self._states.pop(request_id, None)
            if state is not None:
                self._leaving.append(state)
        self._tend()

    def close(self, grace: float = 0.0) -> None:
        """Ends the connection and, on a stream, all sessions with it. With `grace`, in seconds, the
        server is first told how the requests at hand ended."""
        if grace > 0:
            self.leave(list(self._states))
        self._connection.close(grace)

    @property
    def working(self) -> bool:
        """False for a while after a fault of our own: one that stays must not fill the log."""
        return self._clock() >= self._broken_until

    def recover(self) -> None:
        """After a fault of our own: starts over, in a while, with the requests' next rows."""
        self._broken_until = self._clock() + _REFUSAL_WAIT
        self.close()
        self._states.clear()
        self._leaving.clear()

    def _take(self, new: NewRows) -> RequestState:
        state = self._states.get(new.request_id)
        if state is not None and new.fresh:
            # The engine reuses the name: a request that goes on with another prompt.
            self._leaving.append(self._states.pop(new.request_id))
            state = None
        if state is None:
            state = self._states[new.request_id] = RequestState(
                new.request_id,
                new.first,
                self._plan.manifest,
                self._plan.k,
                self._settings.keep_rows,
            )
        state.take(new)
        return state

    # Between the rounds.

    def _tend(self) -> None:
        """Takes over late answers, gives up silent links, closes sessions of no more use."""
        if self._connection.link is not None and self._connection.link.failure is not None:
            self._drop_link(self._connection.link.failure)
        for state in [*self._states.values(), *self._leaving]:
            if state.call is not None and state.call.done:
                self.counts["late"] += 1
                call, state.call = state.call, None
                self._settle(state, call, self._plan.k, None)
            elif state.call is not None:
                silence = self._clock() - state.call.posted_at
                if silence > patience_of(self._settings):
                    self._drop_link(silent(silence))
        for state in self._states.values():
            self._close_abandoned(state)
        self._leaving = [state for state in self._leaving if not self._left(state)]

    def _left(self, state: RequestState) -> bool:
        """Whether the server has been told. An idle engine has no further round to do it in."""
        final_tokens: Sequence[int] = ()
        if state.call is None:
            final_tokens = state.final_tokens()
        elif state.call.kind != "draft":
            return False  # A session that is being opened has no name yet.
        # Behind a draft that is late: nobody verified what it proposes, so nothing judges it.
        self._close_abandoned(state)
        self._close_session(state.session_id, final_tokens)
        return True

    def _close_abandoned(self, state: RequestState) -> None:
        for session_id in state.abandoned:
            self._close_session(session_id)
        state.abandoned.clear()

    def _close_session(self, session_id: str | None, final_tokens: Sequence[int] = ()) -> None:
        if session_id is None or self._connection.link is None:
            return  # A stream took its sessions along; others end with their lease.
        closing = draft_pb2.CloseSessionRequest(session_id=session_id, final_token_ids=final_tokens)
        self._connection.link.post([("close_session", closing)])

    def _drop_link(self, error: AerieError) -> None:
        link = self._connection.drop(error)
        if link is None:
            return
        for state in [*self._states.values(), *self._leaving]:
            state.call = None
            if not link.sessions_survive:
                state.abandoned.clear()
                if state.session_id is not None:
                    self._lose_session(state)

    # The exchange of one round.

    def _exchange(
        self, asking: dict[RequestState, int], end: float, drafts: dict[str, list[int]]
    ) -> None:
        resyncs: collections.Counter[RequestState] = collections.Counter()
        waiting = self._post(list(asking), asking)
        answered = not waiting
        while waiting and self._connection.link is not None:
            left = end - self._clock()
            if left <= 0:
                break
            self._connection.link.wait_any([state.call for state in waiting], left)
            more = []
            for state in list(waiting):
                if state.call is None or not state.call.done:
                    continue
                call, state.call = state.call, None
                waiting.remove(state)
                resynced = isinstance(call.error, ResyncNeeded | SessionUnknown | Overtaken)
                resyncs[state] += resynced
                answered |= call.error is None or not isinstance(call.error, Unavailable)
                again = self._settle(state, call, asking[state], drafts)
                if again and resyncs[state] <= _MOST_RESYNCS:
                    more.append(state)
            waiting += self._post(more, asking)
        if self._connection.link is None:
            return
        if not answered:
            self._connection.failed(late(len(waiting), self._settings.deadline))
        elif drafts:
            self._connection.succeeded()

    def _post(
        self, states: Sequence[RequestState], asking: dict[RequestState, int]
    ) -> list[RequestState]:
        """Sends what each of them needs next, together; gives those that need something."""
        if self._connection.link is None:
            return []
        posted, messages = [], []
        for state in states:
            holes = state.holes
            message = state.next_message(
                asking[state], self._connection.rows_per_call, self._settings.client
            )
            self.counts["hole"] += state.holes - holes
            if message is not None:
                posted.append(state)
                messages.append(message)
        for state, call in zip(posted, self._connection.link.post(messages), strict=True):
            state.call = call
        return posted

    def _settle(
        self, state: RequestState, call: Call, k: int, drafts: dict[str, list[int]] | None
    ) -> bool:
        """Takes over what came. True: the request needs another message in this round.

        `drafts` None: the answer came too late for the round that asked.
        """
        error = call.error
        if error is None:
            if call.kind == "open_session":
                state.opened(call.response)
                return True
            try:
                tokens = state.drafted(call.response, k, in_time=drafts is not None)
            except AerieError as nonsense:
                self._refused(state, nonsense, _REFUSAL_WAIT)
                return False
            if state.held < state.store.end:
                return True
            if tokens and drafts is not None:
                drafts[state.request_id] = tokens
            return False
        if state.forking and not isinstance(error, Unavailable | DeadlineExceeded):
            state.fork_refused()
            return True
        if isinstance(error, ResyncNeeded):
            self.counts["resync"] += 1
            state.resend_from(error.resend_from)
            return True
        if isinstance(error, SessionUnknown | Overtaken):
            self.counts["resync"] += 1
            self._lose_session(state)
            return True
        if isinstance(error, Overloaded):
            state.ask_after = self._clock() + (error.retry_after or 1.0)
        elif isinstance(error, Unavailable | DeadlineExceeded):
            self._drop_link(error)
        else:
            self._refused(state, error, _REFUSAL_WAIT)
        return False

    def _lose_session(self, state: RequestState) -> None:
        holes = state.holes
        state.lose_session()
        self.counts["hole"] += state.holes - holes

    def _refused(self, state: RequestState, error: AerieError, wait: float) -> None:
        """Of this request alone, and not cured by repeating it at once."""
        _LOG.warning(
            "no drafts for request %s from %s: %s; it goes on without",
            state.request_id,
            self._settings.address,
            error,
        )
        state.ask_after = self._clock() + wait
        self._close_session(state.session_id)
        self._lose_session(state)
