"""One request of the engine as the draft server sees it: which rows it holds, what it proposed.

Rows come from the engine in whatever pieces it computes them in, some of them twice (a preempted
request is computed again), some never (a prefix cache computed them for another request). What is
kept here is the window of rows that can still be sent. Nothing here talks to the network.

What one would get wrong: a proposal that the engine never verified (it preempted the request, or
the answer came too late) must not be judged by the tokens that follow, and the server judges by
tokens alone. The request then goes on in a fork of its session, which has the rows and no proposal.
"""

from __future__ import annotations

import dataclasses

import grpc
import numpy as np

from aerie_draft import codec
from aerie_draft._proto import draft_pb2
from aerie_draft.errors import AerieError
from aerie_draft.options import Fork, SessionOptions
from aerie_draft.row_store import RowStore
from aerie_draft.values import Manifest
from aerie_draft.vllm.link import Call


@dataclasses.dataclass(frozen=True, eq=False)
class NewRows:
    """What one engine round computed for one request, rejected rows left out."""

    request_id: str
    first: int  # row index of the first
    tokens: list[int]  # of each row the token that follows its state
    rows: np.ndarray  # [len(tokens), width], encoded
    k: int  # tokens to propose; 0: none, e.g. amid a prompt
    verified: tuple[int, ...] | None  # drafted tokens of this round; None: it sampled nothing
    accepted: int  # how many of them the engine kept
    fresh: bool = False  # the engine's first round for this request
    ending: bool = False  # the engine will ask for nothing more


class RequestState:
    """One thread at a time."""

    def __init__(self, request_id: str, first: int, manifest: Manifest, max_k: int, keep_rows: int):
        self.request_id = request_id
        self._manifest = manifest
        self._max_k = max_k
        self._keep_rows = keep_rows
        self.call: Call | None = None  # under way
        self.session_id: str | None = None
        self.ask_after = -float("inf")  # refused until then
        self.full = False  # at the server's max_context
        self.ending = False
        self.holes = 0  # times that drafts went on without rows before it
        self._seq = 0
        self.abandoned: list[str] = []  # sessions that are of no more use, to be closed
        self._forking = False  # the call under way opens a fork of the session
        self._start_at(first)

    def _start_at(self, first: int) -> None:
        self.store = RowStore(first, self._manifest.row_width, self._manifest.dtype.storage)
        self._origin = first  # the first row of the session
        self._held = first  # rows before it are held by the server, or in the hole
        self._forget_proposal()

    @property
    def held(self) -> int:
        return self._held

    def take(self, new: NewRows) -> None:
        """Adds what the engine computed."""
        self.ending = new.ending
        skip = self._known(new)
        if skip is None:
            # A gap, or other tokens than before: what the session holds is another text.
            self._abandon_session()
            self._start_at(new.first)
            skip = 0
        if skip < len(new.tokens):
            self.store.append(new.tokens[skip:], new.rows[skip:])
        if new.verified is not None and self._proposal and not self._outcome_known:
            # The first round that samples settles it; the server may hear of it rounds later.
            seen = new.verified
            self._unverified = not seen or seen != self._proposal[: len(seen)]
            self._accepted = new.accepted
            self._outcome_known = True

    def _known(self, new: NewRows) -> int | None:
        """How many of the rows are here already; None when they do not continue what is."""
        if new.first > self.store.end:
            return None
        known = min(self.store.end - new.first, len(new.tokens))
        begin = max(new.first, self.store.first)
        ours = self.store.tokens_from(begin)[: max(0, new.first + known - begin)]
        theirs = new.tokens[begin - new.first : known] if begin - new.first < known else []
        return known if ours == theirs else None

    def next_message(self, k: int, rows_per_call: int, client: str) -> tuple | None:
        """(kind, request) that brings the server closer to a draft; None: nothing to be sent."""
        base = self._held
        if base < self.store.first:
            # The server lost rows that were let go here as well. A new session starts behind them.
            self._abandon_session()
            base = self._reopen()
        options = SessionOptions(max_k=self._max_k)
        if self.session_id is None:
            return "open_session", codec.open_message(
                self._manifest, options, None, self._origin, client
            )
        if self._unverified:
            self._forking = True
            fork = Fork(self.session_id, self._held)
            return "open_session", codec.open_message(self._manifest, options, fork, 0, client)
        if k > 0 and base == self.store.end and base > max(self.store.first, self._origin):
            base -= 1  # A draft needs a row.
        count = min(self.store.end - base, rows_per_call)
        if count == 0:
            return None
        last = base + count == self.store.end
        rows = self.store.rows_from(base)[:count]
        request = codec.draft_message(
            base,
            self.store.tokens_from(base)[:count],
            self._manifest,
            k if last else 0,
            self._accepted if base == self._held and self._proposal else None,
        )
        request.hidden_states.data = rows.tobytes()
        self._seq += 1
        request.session_id, request.seq = self.session_id, self._seq
        return "draft", request

    def opened(self, response: draft_pb2.OpenSessionResponse) -> None:
        if self._forking:
            self._abandon_session()
        self.session_id = response.session_id
        self._held = self._held if self._forking else self._origin
        self._seq, self._forking = 0, False
        self._forget_proposal()

    @property
    def forking(self) -> bool:
        return self._forking

    def fork_refused(self) -> None:
        """Goes on in the session itself; the proposal is judged, though nobody verified it."""
        self._forking = self._unverified = False

    def drafted(self, response: draft_pb2.DraftResponse, k: int, in_time: bool) -> list[int]:
        """Takes an answer over; gives the tokens to verify. AerieError if it is none."""
        if not self._origin <= response.length <= self.store.end:
            raise _nonsense(f"a session of {response.length} rows", f"at most {self.store.end}")
        self._forget_proposal()
        self._held = response.length
        tokens = tuple(response.tree.token_ids)
        self._proposal = tokens
        self._unverified = self._outcome_known = bool(tokens) and not in_time
        if response.no_draft_reason == draft_pb2.NO_DRAFT_REASON_CONTEXT_LIMIT:
            self.full = True
        if tuple(response.tree.parents) != tuple(range(len(tokens))) or len(tokens) > k:
            raise _nonsense(f"{len(tokens)} tokens that are no chain", f"a chain of at most {k}")
        if any(token >= self._manifest.vocab_size for token in tokens):
            raise _nonsense(f"token {max(tokens)}", f"target ids below {self._manifest.vocab_size}")
        return list(tokens) if in_time else []

    def resend_from(self, row: int) -> None:
        self._held = max(row, self._origin)
        self._forget_proposal()

    def lose_session(self) -> None:
        """The server has it no more."""
        self.session_id = None
        self._reopen()

    def final_tokens(self) -> list[int]:
        """Those that judge the last proposal, if the engine verified it."""
        if self._unverified or not self._proposal or self._held < self.store.first:
            return []
        return self.store.tokens_from(self._held)

    def let_go(self, server_is_there: bool) -> None:
        """Forgets old rows: those that the server holds, or, without it, all but the newest."""
        floor = self.store.end - self._keep_rows
        if server_is_there and not self.full:
            floor = min(floor, self._held - 1)  # One row to go back by.
        self.store.let_go_before(floor)

    def _reopen(self) -> int:
        self._forking = False
        self._forget_proposal()
        if self._origin != self.store.first:
            self.holes += 1
            self._origin = self.store.first
        self._held = self._origin
        return self._held

    def _abandon_session(self) -> None:
        if self.session_id is not None:
            self.abandoned.append(self.session_id)
        self.session_id = None

    def _forget_proposal(self) -> None:
        # Of the last proposal: its tokens, whether the engine took none of them to verification,
        # how many it kept, and whether that is known yet.
        self._proposal: tuple[int, ...] = ()
        self._accepted: int | None = None
        self._unverified = self._outcome_known = False


def _nonsense(seen: str, expected: str) -> AerieError:
    return AerieError(
        grpc.StatusCode.INTERNAL,
        f"the server answered with {seen}; expected {expected}; look at its version and log",
        "ANSWER_INVALID",
    )
