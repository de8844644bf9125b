"""What the strict server keeps of one session, and whether a call fits what it was told.

`told` is the length that an answer or a refusal gave: a worker cannot know more than that, so a
call that begins above it builds on rows of which nobody told that they arrived.
"""

from __future__ import annotations

import dataclasses

import grpc

from aerie_draft._proto import draft_pb2
from aerie_draft.conformance.proposals import Planned


class Refusal(Exception):
    """An error in place of an answer, with an ErrorDetail in the trailer or in the response."""

    def __init__(self, code: grpc.StatusCode, reason: str, message: str, **fields):
        super().__init__(message)
        self.code = code
        self.detail = draft_pb2.ErrorDetail(
            code=code.value[0], message=message, reason=reason, **fields
        )


class BrokenConnection(Exception):
    """The call, and the stream it came on, end as if the connection had been lost."""


class ServerDies(Exception):
    """The server goes away before the call is answered."""


@dataclasses.dataclass
class StrictSession:
    id: str
    manifest: draft_pb2.Manifest
    options: draft_pb2.SessionOptions  # in force
    start: int = 0
    tokens: list[int] = dataclasses.field(default_factory=list)  # of rows start ..
    rows: list[bytes] = dataclasses.field(default_factory=list)
    told: int = 0
    calls: int = 0
    seq: int = 0
    evicted: list[int] = dataclasses.field(default_factory=list)  # the tokens before an eviction
    stored: draft_pb2.DraftResponse | None = None
    stored_call: tuple = ()
    planned: Planned | None = None
    resend_from: int | None = None  # named by a refusal that was not followed yet
    not_before: float = 0.0  # of a retry_after
    diverged: bool = False  # its tokens are no known text's: judged no further
    full: bool = False  # past the context limit
    held_back: bool = False  # an answer was, at some time
    record: draft_pb2.AcceptanceRecord = dataclasses.field(
        default_factory=draft_pb2.AcceptanceRecord
    )

    @property
    def length(self) -> int:
        return self.start + len(self.tokens)

    @property
    def row_bytes(self) -> int:
        element = 4 if self.manifest.dtype == draft_pb2.DATA_TYPE_FLOAT32 else 2
        return len(self.manifest.captures) * self.manifest.hidden_size * element

    def tokens_before(self, base: int) -> list[int]:
        return self.tokens[: base - self.start]

    def drop_from(self, row: int) -> None:
        keep = row - self.start
        del self.tokens[keep:], self.rows[keep:]

    def commit(self, base: int, tokens: list[int], data: bytes) -> None:
        self.drop_from(base)
        size = self.row_bytes
        self.tokens += tokens
        self.rows += [data[i * size : (i + 1) * size] for i in range(len(tokens))]

    def evict(self, row: int) -> None:
        """Rows from `row` on are lost, and the worker is told so."""
        self.evicted = list(self.tokens)
        self.drop_from(row)
        self.resend_from = self.told = row

    def begin_as(self, parent: StrictSession, length: int) -> None:
        """As a fork of the first `length` rows of `parent`."""
        self.start = parent.start
        self.tokens = parent.tokens_before(length)
        self.rows = parent.rows[: len(self.tokens)]
        self.told = self.length

    def store(self, request: draft_pb2.DraftRequest, response: draft_pb2.DraftResponse) -> None:
        self.seq, self.stored, self.stored_call = request.seq, response, fingerprint(request)

    def answered(self) -> None:
        """The last answer has reached the worker after all."""
        self.told = self.length
        if self.planned is not None:
            self.planned.delivered = True

    def judge(self, full: list[int]) -> tuple[Planned, int] | None:
        """The open proposal and how much of it was kept, once tokens behind it have come."""
        planned, after = self.planned, self.start
        if planned is None or self.start + len(full) <= planned.at:
            return None
        self.planned = None
        kept = planned.kept_by(full[planned.at - after :])
        record = self.record
        record.num_spec_steps += 1
        record.num_draft_tokens += len(planned.tokens)
        record.num_accepted_draft_tokens += kept
        for histogram, place in (
            (record.acceptance_histogram, kept),
            (record.depth_histogram, max(planned.levels, default=-1) + 1),
        ):
            histogram.extend([0] * (place + 1 - len(histogram)))
            histogram[place] += 1
        return planned, kept


def fingerprint(request: draft_pb2.DraftRequest) -> tuple:
    """What must not differ between two calls of one number."""
    return (
        request.base_length,
        tuple(request.token_ids),
        request.hidden_states.dtype,
        request.hidden_states.data,
        request.k,
    )
