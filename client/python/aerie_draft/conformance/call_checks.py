"""What a call must be like whatever the text is: manifest, sizes, ids, and where it begins.

Each refuses as a real server does, and notes the rule.
"""

from __future__ import annotations

import time

import grpc
import numpy as np

from aerie_draft._proto import draft_pb2
from aerie_draft.conformance.report import Evidence
from aerie_draft.conformance.row_checks import decode_rows
from aerie_draft.conformance.shape import DrafterShape
from aerie_draft.conformance.strict_session import Refusal, StrictSession

_INVALID = grpc.StatusCode.INVALID_ARGUMENT
# Timers of two processes on one machine may differ by their resolution.
_CLOCK_SLACK = 0.005


class CallChecks:
    """The strict server's lock guards it."""

    def __init__(self, shape: DrafterShape, limits: draft_pb2.Limits, evidence: Evidence):
        self._shape = shape
        self._limits = limits
        self._evidence = evidence
        self.where = ""  # the scenario

    def _violated(self, rule: str, seen: str, expected: str, remedy: str) -> None:
        self._evidence.violated(rule, self.where, seen, expected, remedy)

    def manifest(self, manifest: draft_pb2.Manifest) -> None:
        self._evidence.saw("W-MANIFEST")
        differences = self._shape.differences(manifest)
        if len(manifest.target_id.encode()) > 256 or manifest.dtype not in (1, 2, 3):
            self._violated(
                "W-MANIFEST",
                f"target_id of {len(manifest.target_id.encode())} bytes, dtype {manifest.dtype}",
                "at most 256 bytes and a dtype that the server named",
                "shorten the name, name the type of the bytes that are sent",
            )
            raise Refusal(_INVALID, "MANIFEST_INVALID", "the manifest contradicts itself")
        if not differences:
            return
        told = "; ".join(f"{d.field} {d.received} instead of {d.expected}" for d in differences)
        self._violated(
            "W-MANIFEST",
            f"a manifest with {told}",
            "what GetServerInfo says of the drafter",
            "correct what is captured, or the sizes given to this tool",
        )
        raise Refusal(
            grpc.StatusCode.FAILED_PRECONDITION,
            "MANIFEST_MISMATCH",
            f"the manifest does not fit: {told}",
            mismatches=differences,
        )

    def shape(self, request: draft_pb2.DraftRequest, session: StrictSession) -> None:
        """Raises Refusal for what contradicts itself."""
        count, data = len(request.token_ids), request.hidden_states.data
        limits = self._limits
        self._evidence.saw("W-ROW-BYTES")
        if count and (
            request.hidden_states.dtype != session.manifest.dtype
            or len(data) != count * session.row_bytes
        ):
            self._refuse(
                "W-ROW-BYTES",
                "BYTE_COUNT",
                f"{count} tokens with {len(data)} bytes of dtype {request.hidden_states.dtype}",
                f"{count * session.row_bytes} bytes of dtype {session.manifest.dtype}",
                "send one row for each token, all captures of it",
            )
        if count > limits.max_rows_per_call or request.ByteSize() > limits.max_message_bytes:
            self._refuse(
                "W-CHUNK",
                "TOO_MANY_ROWS",
                f"a call of {count} rows and {request.ByteSize()} bytes",
                f"at most {limits.max_rows_per_call} rows and {limits.max_message_bytes} bytes",
                "send the rows in several calls, all but the last with k = 0",
            )
        if count and not request.k:
            self._evidence.saw("W-CHUNK")
        if request.k:
            self._evidence.saw("W-K")
        if request.k > session.options.max_k or (request.k and not count):
            self._refuse(
                "W-K",
                "K_OUT_OF_RANGE" if count else "K_WITHOUT_ROWS",
                f"k {request.k} with {count} rows",
                f"0..{session.options.max_k}, and a row with it",
                "ask for fewer tokens, and send the newest row with the call that drafts",
            )
        if not count:
            return
        self._evidence.saw("W-VOCAB")
        worst = max(request.token_ids)
        if worst >= self._shape.vocab_size:
            self._refuse(
                "W-VOCAB",
                "TOKEN_OUT_OF_RANGE",
                f"token id {worst}",
                f"0..{self._shape.vocab_size - 1}",
                "send no padding or placeholder ids",
            )
        self._evidence.saw("W-FINITE")
        if not np.all(np.isfinite(decode_rows(request, session))):
            self._refuse(
                "W-FINITE",
                "NON_FINITE",
                "a NaN or an infinity among the rows",
                "finite numbers",
                "look for an overflow in the target, or for uninitialised memory",
            )

    def _refuse(self, rule, reason, seen, expected, remedy) -> None:
        self._violated(rule, seen, expected, remedy)
        raise Refusal(_INVALID, reason, f"{seen}; expected {expected}; {remedy}")

    def order(self, request: draft_pb2.DraftRequest, session: StrictSession) -> None:
        """The number of a call that repeats none; raises Refusal."""
        if request.seq > session.seq:
            return
        self._violated(
            "W-SEQ",
            f"seq {request.seq} behind seq {session.seq}",
            "growing numbers",
            "number the calls of a session one after the other",
        )
        raise Refusal(grpc.StatusCode.ABORTED, "SEQ_BEHIND", f"seq {request.seq} was overtaken")

    def beginning(
        self, request: draft_pb2.DraftRequest, session: StrictSession, lost: bool
    ) -> None:
        """The first call of a session; `lost`: another one was lost before."""
        if lost:
            self._evidence.saw("W-SESSION-LOST")
        if request.base_length > session.length:
            self._violated(
                "W-SESSION-LOST" if lost else "W-BASE",
                f"a new session of {session.length} rows whose first call begins at row "
                f"{request.base_length}",
                f"base_length {session.length}",
                "send a new session all rows, or open it with `start`",
            )

    def base(self, request: draft_pb2.DraftRequest, session: StrictSession) -> None:
        """Where the call begins; raises Refusal for a gap."""
        base = request.base_length
        if session.not_before:
            early = session.not_before - time.monotonic()
            session.not_before = 0.0
            if early > _CLOCK_SLACK:
                self._violated(
                    "W-RETRY-AFTER",
                    f"a call {early:.3f} s before retry_after had passed",
                    "none before",
                    "decode without drafts until then",
                )
        if session.resend_from is not None:
            wanted, session.resend_from = session.resend_from, None
            self._evidence.saw("W-RESEND-FROM")
            if base > wanted:
                self._violated(
                    "W-RESEND-FROM",
                    f"the refusal said to resend from row {wanted}, and the next call begins at "
                    f"row {base}",
                    f"base_length {wanted}, and all rows from there on",
                    "keep the rows, or open a new session that starts at the first one kept",
                )
                session.resend_from = wanted
                self._gap(session, wanted)
        elif session.calls:
            self._evidence.saw("W-BASE")
            if base > session.told or base < session.start:
                self._violated(
                    "W-BASE",
                    f"base_length {base} when {session.told} rows were told to have arrived"
                    + (f" and the session starts at {session.start}" if session.start else ""),
                    f"{session.start}..{session.told}",
                    "count rows, not tokens, and go on from the last answer that came",
                )
        if base > session.length:
            self._gap(session, session.length)
        if base < session.start:
            raise Refusal(_INVALID, "REQUEST_INVALID", f"base_length {base} is below the start")

    def _gap(self, session: StrictSession, row: int) -> None:
        session.resend_from = session.told = row
        raise Refusal(
            grpc.StatusCode.FAILED_PRECONDITION,
            "BASE_LENGTH_AHEAD",
            f"the session holds {session.length} rows; expected no gap; resend from row {row}",
            resend_from=row,
        )
