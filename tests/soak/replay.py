"""Honest clients: recorded sequences, drafted for again and again, whose drafts must not change.

A *script* is one sequence with one way of drafting and its fixed rounds. It is played once on a
quiet server; from then on every play must give the same proposals, whatever else goes on. A token
may differ only where two were as good as equally likely, since rows that share a pass are summed up
in another order than rows alone.
"""

from __future__ import annotations

import dataclasses
import random
import time

import grpc

PATIENCE = 60.0  # seconds of a call; one that takes longer is stuck
TIE = 2e-3  # between log-probabilities
ROWS_PER_CALL = 64


@dataclasses.dataclass(frozen=True)
class Proposal:
    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    log_probs: tuple[float, ...]

    def same_as(self, other: Proposal) -> bool:
        return (self.tokens, self.parents) == (other.tokens, other.parents)

    def ties_with(self, other: Proposal) -> bool:
        """Whether the first node that differs was chosen only because it is as likely."""
        for node, (a, b) in enumerate(zip(self._nodes(), other._nodes())):
            if a != b:
                return abs(self._score(node) - other._score(node)) < TIE
        return False

    def _nodes(self):
        return zip(self.tokens, self.parents)

    def _score(self, node: int) -> float:
        """Log-probability of the path down to this node; nodes are chosen by it."""
        parent = self.parents[node]
        return self.log_probs[node] + (self._score(parent - 1) if parent else 0.0)


@dataclasses.dataclass(frozen=True)
class Script:
    name: str
    sequence: object  # conftest.Sequence
    manifest: object
    options: object  # aerie.v1.SessionOptions
    k: int
    ends: tuple[int, ...]  # rows committed after each round

    @staticmethod
    def make(name, sequence, manifest, options, k, seed) -> Script:
        draw = random.Random(seed)
        last = len(sequence.tokens) - 1
        ends = [min(sequence.fact["prompt_tokens"], last)]
        while ends[-1] < last:
            ends.append(min(last, ends[-1] + draw.choice((1, 1, 2, 3))))
        return Script(name, sequence, manifest, options, k, tuple(ends))


class Refused(Exception):
    """The server went away or drains: nothing was decided."""


class Player:
    """Plays scripts over one connection, and takes every refusal that a client must cope with."""

    def __init__(self, pb, stub, counts, pauses: random.Random | None = None):
        """`pauses`: rests between some rounds, as targets do, so that its rows may be evicted."""
        self._pb, self._stub, self._counts, self._pauses = pb, stub, counts, pauses

    def play(self, script: Script, expected: list[Proposal] | None, rounds: int | None = None):
        """The proposals of all rounds, or of the first few. Counts what differs from `expected`."""
        session = self._open(script)
        made, held, seq = [], 0, 0
        for number, end in enumerate(script.ends[:rounds]):
            if self._pauses is not None and self._pauses.random() < 0.05:
                time.sleep(2 * self._pauses.random())
            while held < end - ROWS_PER_CALL:
                seq += 1
                held = self._draft(script, session, seq, held, held + ROWS_PER_CALL, 0).length
            seq += 1
            response = self._draft(script, session, seq, held, end, script.k)
            held = response.length
            tree = response.tree
            made.append(Proposal(tuple(tree.token_ids), tuple(tree.parents), tuple(tree.log_probs)))
            if expected is not None:
                self._compare(script, number, made[-1], expected[number])
        self._call(self._stub.CloseSession, self._pb.CloseSessionRequest(session_id=session))
        return made

    def _compare(self, script, number, made, expected):
        self._counts.rounds += 1
        if made.same_as(expected):
            return
        if made.ties_with(expected):
            self._counts.ties += 1
        elif script.options.HasField("sampling"):
            # A draw may fall so close between two tokens that rounding decides: always at the same
            # few places.
            self._counts.other_draws.add((script.name, number))
        else:
            self._counts.different.append(f"{script.name} round {number}: {made} not {expected}")

    def _open(self, script) -> str:
        request = self._pb.OpenSessionRequest(manifest=script.manifest, options=script.options)
        return self._call(self._stub.OpenSession, request).session_id

    def _draft(self, script, session, seq, first, end, k):
        """Commits rows [first, end); sends again what the server lost."""
        while True:
            request = self._pb.DraftRequest(
                session_id=session, seq=seq, k=k, **script.sequence.rows(self._pb, first, end)
            )
            try:
                return self._call(self._stub.Draft, request)
            except grpc.RpcError as error:
                resend = self._resend_from(error)
                if resend is None:
                    raise
            self._counts.resent += 1
            first = resend
            # Numbers stay: a refused call has used up none.
            while first < end - ROWS_PER_CALL:
                rows = script.sequence.rows(self._pb, first, first + ROWS_PER_CALL)
                try:
                    request = self._pb.DraftRequest(session_id=session, seq=0, k=0, **rows)
                    first = self._call(self._stub.Draft, request).length
                except grpc.RpcError as error:
                    first = self._resend_from(error)
                    if first is None:
                        raise

    def _resend_from(self, error):
        if error.code() != grpc.StatusCode.FAILED_PRECONDITION:
            return None
        detail = detail_of(self._pb, error)
        return detail.resend_from if detail.HasField("resend_from") else None

    def _call(self, method, request):
        """One answer; waits when the server says that it is full."""
        started = time.monotonic()
        while True:
            try:
                return method(request, timeout=PATIENCE)
            except grpc.RpcError as error:
                if error.code() == grpc.StatusCode.UNAVAILABLE:
                    raise Refused from error
                if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                    self._counts.stuck.append(f"{type(request).__name__} got no answer")
                    raise
                if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED:
                    raise
                self._counts.waited += 1
                if time.monotonic() - started > PATIENCE:
                    self._counts.stuck.append(f"{type(request).__name__} was refused for {PATIENCE} s")
                    raise
                time.sleep(0.05)


def detail_of(pb, error):
    """The ErrorDetail of a failed unary call; an empty one without."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for entry in pb.StatusDetails.FromString(value).details:
                detail = pb.ErrorDetail()
                if entry.Unpack(detail):
                    return detail
    return pb.ErrorDetail()
