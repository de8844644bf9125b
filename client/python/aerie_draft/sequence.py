"""Keeps one sequence drafted for, whatever happens to the server.

A worker must never fail because its drafter did: every trouble that waiting or resending cures ends
in "no draft this round", and the sequence catches up by itself. To be able to, it keeps all rows of
the sequence: a server that restarted has none and is sent them from row 0. Only what no waiting
cures is raised: a manifest that does not fit, or a call that contradicts itself.
"""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable, Sequence

import grpc
import numpy as np

from aerie_draft.client import DraftClient
from aerie_draft.dtypes import encode_rows
from aerie_draft.errors import (
    AerieError,
    DeadlineExceeded,
    Overloaded,
    Overtaken,
    ResyncNeeded,
    SessionUnknown,
    Unavailable,
)
from aerie_draft.session import DraftSession
from aerie_draft.values import AcceptanceRecord, Manifest, Proposal, common_prefix

# A resend can itself be told to resend (the session's lease may run out between two calls), but a
# server that never has enough is broken and treated as down.
_MOST_TRIES = 4


class Availability:
    """Whether to ask the server at all. Shared by all sequences of a worker. Any thread.

    After a failure nobody asks for a while, so that a dead server costs its time-out once and not
    once a round; the wait doubles from `first_wait` up to `longest_wait` seconds.
    """

    def __init__(
        self,
        first_wait: float = 0.25,
        longest_wait: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._first_wait = first_wait
        self._longest_wait = longest_wait
        self._clock = clock
        self._lock = threading.Lock()
        self._wait = first_wait
        self._ask_after = -float("inf")
        # By exception name: how often the server failed us.
        self.failures: collections.Counter[str] = collections.Counter()

    def ready(self) -> bool:
        with self._lock:
            return self._clock() >= self._ask_after

    def failed(self, error: AerieError) -> None:
        with self._lock:
            wait = getattr(error, "retry_after", None)
            if wait is None:
                wait, self._wait = self._wait, min(2 * self._wait, self._longest_wait)
            self._ask_after = self._clock() + wait
            self.failures[type(error).__name__] += 1

    def succeeded(self) -> None:
        with self._lock:
            self._wait = self._first_wait


class DraftedSequence:
    """One sequence of a target worker. One thread at a time.

    For each round: commit() what the target kept, then propose(); at the end finish().
    """

    def __init__(
        self,
        client: DraftClient,
        manifest: Manifest,
        availability: Availability,
        max_k: int | None = None,
        timeout: float | None = None,
    ):
        self._client = client
        self._manifest = manifest
        self._availability = availability
        self._max_k = max_k
        self._timeout = timeout
        self._session: DraftSession | None = None
        self._tokens: list[int] = []  # of each row the token that follows its state
        self._rows: list[np.ndarray] = []  # encoded, in pieces as they came
        self._held = 0  # rows that the server is believed to hold
        self._proposed: tuple[int, tuple[int, ...]] | None = None  # at how many rows, and what
        self._full = False  # at the server's max_context
        self.missed = 0  # rounds that went without a draft because of the server
        self.resyncs = 0  # times that rows were sent again, or a session was opened again

    @property
    def length(self) -> int:
        """Rows committed so far, sent or not."""
        return len(self._tokens)

    def commit(self, tokens: Sequence[int], rows: np.ndarray) -> None:
        """Adds rows: states of the next positions, and the token after each. Sends nothing."""
        encoded = encode_rows(rows, self._manifest.dtype)
        if encoded.shape != (len(tokens), self._manifest.row_width):
            raise ValueError(
                f"hidden states have shape {list(encoded.shape)}; expected "
                f"[{len(tokens)}, {self._manifest.row_width}], one row a token; correct the capture"
            )
        self._tokens.extend(int(t) for t in tokens)
        self._rows.append(encoded)

    def propose(self, k: int) -> Proposal | None:
        """Sends what the server lacks and asks for k tokens.

        None: decode alone, since there is no server or the sequence is too long for it.
        """
        if self._full:
            return None
        if not self._availability.ready():
            self.missed += 1
            return None
        for _ in range(_MOST_TRIES):
            try:
                if self._session is None:
                    self._session = self._client.open(self._manifest, self._max_k, self._timeout)
                    self._held, self._proposed = 0, None
                proposal = self._session.draft(
                    self._held,
                    self._tokens[self._held :],
                    self._rows_from(self._held),
                    k,
                    accepted=self._accepted(self._tokens),
                    timeout=self._timeout,
                )
            except ResyncNeeded as error:
                self._held, self._proposed = error.resend_from, None
                self.resyncs += 1
            except (SessionUnknown, Overtaken):
                self._session = None
                self.resyncs += 1
            except (Unavailable, Overloaded, DeadlineExceeded) as error:
                return self._give_up(error)
            else:
                self._availability.succeeded()
                self._held = proposal.length
                self._proposed = (self._held, proposal.tokens) if proposal.tokens else None
                # Asking on would send the same rows again, ever more of them.
                self._full = proposal.no_draft_reason == "CONTEXT_LIMIT"
                return proposal
        return self._give_up(
            Unavailable(
                grpc.StatusCode.UNAVAILABLE,
                f"the server asked for rows again {_MOST_TRIES} times in one round; expected once; "
                "look at its log",
            )
        )

    def finish(self, final_tokens: Sequence[int] = ()) -> AcceptanceRecord | None:
        """Ends the sequence. `final_tokens`: those after the last committed row.

        None when there is no server to tell; it closes the session when its lease runs out.
        """
        session, self._session = self._session, None
        if session is None:
            return None
        try:
            return session.close([*self._tokens[self._held :], *final_tokens], self._timeout)
        except AerieError as error:
            if not isinstance(error, SessionUnknown):
                self._availability.failed(error)
            return None

    def _accepted(self, tokens: list[int]) -> int | None:
        """Of the last proposal, as far as tokens are known."""
        if self._proposed is None:
            return None
        at, proposed = self._proposed
        return common_prefix(proposed, tokens[at:])

    def _rows_from(self, first: int) -> np.ndarray:
        # Nearly always the newest piece alone; all of them after a restart.
        pieces, missing = [], len(self._tokens) - first
        for piece in reversed(self._rows):
            if missing <= 0:
                break
            pieces.append(piece[max(0, len(piece) - missing) :])
            missing -= len(pieces[-1])
        if not pieces:
            return np.empty((0, self._manifest.row_width), self._manifest.dtype.storage)
        return np.concatenate(pieces[::-1])

    def _give_up(self, error: AerieError) -> None:
        self._availability.failed(error)
        self.missed += 1
        self._proposed = None
        return None
