"""The checks that one Draft call of a worker goes through, each named after its rule.

Two kinds: `shape` checks refuse as a real server does; the others only take notes, so that one
mistake does not hide the next.
"""

from __future__ import annotations

import time

import grpc
import numpy as np

from aerie_draft._proto import draft_pb2
from aerie_draft.conformance.proposals import Planned
from aerie_draft.conformance.report import Evidence
from aerie_draft.conformance.row_checks import RowBook, decode
from aerie_draft.conformance.shape import DrafterShape
from aerie_draft.conformance.strict_session import Refusal, StrictSession
from aerie_draft.conformance.texts import Texts
from aerie_draft.values import common_prefix

_INVALID = grpc.StatusCode.INVALID_ARGUMENT
# Timers of two processes on one machine may differ by their resolution.
_CLOCK_SLACK = 0.005


class CallChecks:
    """The strict server's lock guards it."""

    def __init__(
        self, shape: DrafterShape, limits: draft_pb2.Limits, evidence: Evidence, texts: Texts,
        row_tolerance: float,
    ):
        self._shape = shape
        self._limits = limits
        self._evidence = evidence
        self._texts = texts
        self._book = RowBook(len(shape.captures), row_tolerance)
        self.where = ""  # the scenario
        self.learning = False  # no text is held against anybody

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
                "W-ROW-BYTES", "BYTE_COUNT",
                f"{count} tokens with {len(data)} bytes of dtype {request.hidden_states.dtype}",
                f"{count * session.row_bytes} bytes of dtype {session.manifest.dtype}",
                "send one row for each token, all captures of it",
            )
        if count > limits.max_rows_per_call or request.ByteSize() > limits.max_message_bytes:
            self._refuse(
                "W-CHUNK", "TOO_MANY_ROWS",
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
                "W-K", "K_OUT_OF_RANGE" if count else "K_WITHOUT_ROWS",
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
                "W-VOCAB", "TOKEN_OUT_OF_RANGE", f"token id {worst}",
                f"0..{self._shape.vocab_size - 1}", "send no padding or placeholder ids",
            )
        self._evidence.saw("W-FINITE")
        if not np.all(np.isfinite(self._decode(request, session))):
            self._refuse(
                "W-FINITE", "NON_FINITE", "a NaN or an infinity among the rows", "finite numbers",
                "look for an overflow in the target, or for uninitialised memory",
            )

    def _refuse(self, rule, reason, seen, expected, remedy) -> None:
        self._violated(rule, seen, expected, remedy)
        raise Refusal(_INVALID, reason, f"{seen}; expected {expected}; {remedy}")

    def _decode(self, request, session) -> np.ndarray:
        width = session.row_bytes // (4 if session.manifest.dtype == 1 else 2)
        return decode(request.hidden_states.data, session.manifest.dtype, width)

    def base(self, request: draft_pb2.DraftRequest, session: StrictSession) -> None:
        """Where the call begins; raises Refusal for a gap."""
        base = request.base_length
        if session.not_before:
            early = session.not_before - time.monotonic()
            session.not_before = 0.0
            if early > _CLOCK_SLACK:
                self._violated(
                    "W-RETRY-AFTER", f"a call {early:.3f} s before retry_after had passed",
                    "none before", "decode without drafts until then",
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
            grpc.StatusCode.FAILED_PRECONDITION, "BASE_LENGTH_AHEAD",
            f"the session holds {session.length} rows; expected no gap; resend from row {row}",
            resend_from=row,
        )

    def text(self, session: StrictSession, base: int, new: list[int], resent: bool) -> None:
        """Whether the tokens are those of the text; notes the rule that is broken if not."""
        if session.diverged or not new or (self.learning and not self._texts.given):
            return
        full = session.tokens_before(base) + new
        text, shared = self._texts.nearest(full, session.start)
        text = text[session.start :]
        self._evidence.saw("W-ROWS-COMMITTED")
        if self._texts.given:
            self._evidence.saw("W-PAIRING")
        # What goes on behind the known text was not there to be compared with.
        if shared == len(full) or shared == len(text):
            return
        session.diverged = True
        at = session.start + shared
        seen = f"row {at} came with token {full[shared]}, where the text has {text[shared]}"
        planned = session.planned
        if planned is not None and full[shared] in planned.wrong_at(at - planned.at, text[shared]):
            self._violated(
                "W-REJECTED-DROPPED",
                f"{seen}; it is a draft token that was wrong",
                "rows of what the target kept, and its own token behind them",
                "cut rows and tokens of a verification to accepted + 1",
            )
            return
        place = base - session.start
        ours = lambda shift: text[max(place + shift, 0) : max(place + shift, 0) + len(new)]  # noqa: E731
        for shift, what in ((-1, "behind"), (1, "ahead")):
            # One token alone may be a coincidence.
            shifted = ours(shift)
            if len(new) > 1 and place + shift >= 0 and new[: len(shifted)] == shifted:
                self._violated(
                    "W-PAIRING",
                    f"{seen}: the tokens are one position {what}",
                    "the token that follows each state",
                    "pair the state of position i with token i + 1",
                )
                return
        if self._texts.given and base == session.start == 0 and self._starts_at_zero(new):
            return
        # A resend repeats what was there; what is wrong behind it was wrong without it.
        resent = resent and common_prefix(full, session.evicted) < len(session.evicted)
        rule = "W-RESEND-FROM" if resent else "W-ROWS-COMMITTED"
        self._violated(
            rule, seen, "the tokens of the text that was decoded without drafts",
            "send all rows from base_length on" if resent else
            "send what the target kept; if the text itself is another one at each run, decode "
            "greedily, or tell --texts",
        )

    def _starts_at_zero(self, new: list[int]) -> bool:
        """Notes it when the first token is that of position 0, which is never sent."""
        if not any(new[1 : 1 + len(text)] == text[: len(new) - 1] for text in self._texts.all()):
            return False
        self._violated(
            "W-PAIRING",
            f"row 0 came with token {new[0]}, which is that of position 0",
            "the token at position 1 with the state of position 0",
            "pair the state of position i with token i + 1; the first token is never sent",
        )
        return True

    def rows(self, request: draft_pb2.DraftRequest, session: StrictSession, base: int) -> None:
        """Whether each row is what it was when it was first seen. After text()."""
        if session.diverged or session.start or not request.token_ids:
            return
        full = session.tokens_before(base) + list(request.token_ids)
        found = self._book.compare(full, base, self._decode(request, session))
        for row, difference in enumerate(found, base):
            if difference is None:
                continue
            self._evidence.saw("W-ROWS-SAME")
            if self._book.differs(difference):
                self._violated(
                    "W-ROWS-SAME",
                    f"row {row} differs by {difference:.3g} of its size from the row that came "
                    "before with the same tokens in front of it",
                    "the same state for the same history",
                    "look for a KV cache that keeps rejected tokens, rows of the wrong node of a "
                    "draft, or rows that moved by one after a verification",
                )
                return

    def outcome(
        self, request: draft_pb2.DraftRequest | None, judged: tuple[Planned, int] | None
    ) -> None:
        """`accepted`, and that a refused token was there to be dropped."""
        if judged is not None and judged[0].has_wrong:
            self._evidence.saw("W-REJECTED-DROPPED")
        if request is None or not request.HasField("accepted"):
            return
        self._evidence.saw("W-ACCEPTED")
        if judged is None or not judged[0].delivered:
            self._violated(
                "W-ACCEPTED", f"accepted {request.accepted} without a proposal that was answered",
                "nothing", "leave it unset when the last proposal did not arrive",
            )
        elif judged[1] != request.accepted:
            self._violated(
                "W-ACCEPTED", f"accepted {request.accepted} where the tokens say {judged[1]}",
                "the tokens of the proposal that the target kept, without its own",
                "count leading draft tokens that are equal, bonus token not included",
            )
