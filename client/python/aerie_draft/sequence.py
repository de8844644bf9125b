"""Keeps one sequence drafted for, whatever happens to the server.

A worker must never fail because its drafter did: every trouble that waiting or resending cures ends
in "no draft this round", and the sequence catches up by itself. A server that restarted, or made
room for busier sessions, has lost its rows; what is done then is the worker's choice (`OnLoss`),
and whatever is done is counted in `Availability` and logged. Only what no waiting cures is raised:
a manifest that does not fit, options that contradict each other, a call that does.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Sequence

import grpc
import numpy as np

from aerie_draft.availability import Availability
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
from aerie_draft.options import SessionOptions, VerifyCost
from aerie_draft.row_store import RowStore
from aerie_draft.session import DraftSession
from aerie_draft.values import AcceptanceRecord, Manifest, Proposal

_LOG = logging.getLogger("aerie_draft")
# A resend can itself be told to resend (the session's lease may run out between two calls), but a
# server that never has enough is broken and treated as down.
_MOST_TRIES = 4


class OnLoss(enum.Enum):
    """What a sequence does about rows that the server has lost."""

    # Sends them again. So the worker keeps all rows of the sequence.
    RESEND = "resend"
    # Keeps the newest `keep_rows` rows and those that the server lacks, and opens a new session
    # that starts at the first of them. Drafts go on without the rows before it, which costs
    # acceptance until enough new ones have come.
    REOPEN = "reopen"


class DraftedSequence:
    """One sequence of a target worker. One thread at a time.

    For each round: commit() what the target kept, then propose(); at the end finish().

    Args:
        options: How the sequence is to be drafted for.
        start: The first row that will be committed, when the target never computed those before.
        client_name: Whose quota and share of the server the sequence belongs to.
        traceparent: The W3C traceparent of the request that the sequence serves; it goes into the
            server's log and request log.
        on_loss: What to do about rows that the server has lost.
        keep_rows: With OnLoss.REOPEN, the newest rows that are kept to be sent again; 1 or more.
        timeout: Seconds that one round may wait for the server; None: the client's.
    """

    def __init__(
        self,
        client: DraftClient,
        manifest: Manifest,
        availability: Availability,
        options: SessionOptions = SessionOptions(),
        *,
        start: int = 0,
        client_name: str = "",
        traceparent: str = "",
        on_loss: OnLoss = OnLoss.RESEND,
        keep_rows: int = 256,
        timeout: float | None = None,
    ):
        if keep_rows < 1:
            raise ValueError(
                f"keep_rows is {keep_rows}; expected 1 or more, since a draft starts from the "
                "newest row; give the rows that may be sent again"
            )
        self._client = client
        self._manifest = manifest
        self._availability = availability
        self._options = options
        self._client_name = client_name
        self._traceparent = traceparent
        self._on_loss = on_loss
        self._keep_rows = keep_rows
        self._timeout = timeout
        self._session: DraftSession | None = None
        self._key: str | None = None  # of the first session, and of those that replace it
        encoded_width = manifest.dtype.encoded_width(manifest.row_width)
        self._rows = RowStore(start, encoded_width, manifest.dtype.storage)
        self._origin = start  # the first row of the session
        self._held = start  # rows before it are believed to be held by the server, or in the hole
        self._proposed: tuple[int, Proposal] | None = None  # at how many rows, and what
        self._full = False  # at the server's max_context
        self.missed = 0  # rounds that went without a draft because of the server
        self.resyncs = 0  # times that rows were sent again, or a session was opened again
        self.holes = 0  # of these, the times that drafts went on without rows that were let go

    @property
    def key(self) -> str | None:
        """What tells a proxy which server holds the session; None before the first one."""
        return self._key

    @property
    def length(self) -> int:
        """Rows committed so far, sent or not, with those before `start`."""
        return self._rows.end

    def commit(self, tokens: Sequence[int], rows: np.ndarray) -> None:
        """Adds rows: states of the next positions, and the token after each. Sends nothing."""
        encoded = encode_rows(rows, self._manifest.dtype)
        width = self._manifest.dtype.encoded_width(self._manifest.row_width)
        if encoded.shape != (len(tokens), width):
            raise ValueError(
                f"hidden states have shape {list(np.shape(rows))}; expected "
                f"[{len(tokens)}, {self._manifest.row_width}], one row a token; correct the capture"
            )
        self._rows.append(tokens, encoded)

    def propose(self, k: int, verify_cost: VerifyCost | None = None) -> Proposal | None:
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
                proposal = self._draft(k, verify_cost)
            except ResyncNeeded as error:
                self._resend(error)
            except (SessionUnknown, Overtaken) as error:
                self._session = None
                self._reopen(error)
            except (Unavailable, Overloaded, DeadlineExceeded) as error:
                return self._give_up(error)
            else:
                self._availability.succeeded()
                self._took(proposal)
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
            return session.close(
                [*self._rows.tokens_from(self._held), *final_tokens], self._timeout
            )
        except AerieError as error:
            if not isinstance(error, SessionUnknown):
                self._availability.failed(error)
            return None

    def _draft(self, k: int, verify_cost: VerifyCost | None) -> Proposal:
        if self._session is None:
            self._session = self._client.open_session(
                self._manifest,
                self._options,
                start=self._origin,
                client=self._client_name,
                key=self._key,
                traceparent=self._traceparent,
                timeout=self._timeout,
            )
            self._key = self._session.key
            self._held, self._proposed = self._origin, None
        return self._session.draft(
            self._held,
            self._rows.tokens_from(self._held),
            self._rows.rows_from(self._held),
            k,
            accepted=self._accepted(),
            verify_cost=verify_cost,
            timeout=self._timeout,
        )

    def _took(self, proposal: Proposal) -> None:
        self._held = proposal.length
        self._proposed = (self._held, proposal) if proposal.tokens else None
        # Asking on would send the same rows again, ever more of them.
        self._full = proposal.no_draft_reason == "CONTEXT_LIMIT"
        if self._on_loss is OnLoss.REOPEN:
            self._rows.let_go_before(min(self._held, self._rows.end - self._keep_rows))

    def _resend(self, error: ResyncNeeded) -> None:
        """The session stands, but lacks rows."""
        if error.resend_from < self._rows.first:
            # They are gone here as well. The session that lacks them is of no more use.
            session, self._session = self._session, None
            try:
                session.close(timeout=self._timeout)
            except AerieError as trouble:
                _LOG.info("a session that lost its rows could not be closed: %s", trouble)
            self._reopen(error)
            return
        self._held, self._proposed = error.resend_from, None
        self._note_loss(error, "resent")

    def _reopen(self, error: AerieError) -> None:
        """The session is gone; the next one starts at the first row that is still held."""
        self._proposed = None
        if self._rows.first == self._origin:
            self._note_loss(error, "reopened")
            return
        self._origin = self._rows.first
        self.holes += 1
        self._note_loss(error, "reopened with a hole")

    def _note_loss(self, error: AerieError, remedy: str) -> None:
        self.resyncs += 1
        self._availability.lost(error.reason, remedy)
        _LOG.warning(
            "the draft server lost rows of a sequence of %d (%s): %s; its rows begin at %d",
            self.length,
            error.reason,
            remedy,
            self._origin,
        )

    def _accepted(self) -> int | None:
        """Of the last proposal, as far as tokens are known."""
        if self._proposed is None:
            return None
        at, proposal = self._proposed
        return proposal.accepted_by(self._rows.tokens_from(at))

    def _give_up(self, error: AerieError) -> None:
        self._availability.failed(error)
        self.missed += 1
        self._proposed = None
        return None
