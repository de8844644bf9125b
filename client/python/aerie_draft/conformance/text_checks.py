"""What a call brings, held against the worker's own text: tokens, rows, and counts.

These refuse nothing: they take notes, so that one mistake does not hide the next.
"""

from __future__ import annotations

from aerie_draft._proto import draft_pb2
from aerie_draft.conformance.proposals import Planned
from aerie_draft.conformance.report import Evidence
from aerie_draft.conformance.row_checks import RowBook, decode_rows
from aerie_draft.conformance.shape import DrafterShape
from aerie_draft.conformance.strict_session import StrictSession
from aerie_draft.conformance.texts import Texts
from aerie_draft.values import common_prefix


class TextChecks:
    """The strict server's lock guards it."""

    def __init__(self, shape: DrafterShape, evidence: Evidence, texts: Texts, row_tolerance: float):
        self._evidence = evidence
        self._texts = texts
        self._book = RowBook(len(shape.captures), row_tolerance)
        self.where = ""  # the scenario
        self.learning = False  # no text is held against anybody

    def _violated(self, rule: str, seen: str, expected: str, remedy: str) -> None:
        self._evidence.violated(rule, self.where, seen, expected, remedy)

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
        moved = _moved(text, base - session.start, new)
        if moved:
            self._violated(
                "W-PAIRING",
                f"{seen}: the tokens are one position {moved}",
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
            rule,
            seen,
            "the tokens of the text that was decoded without drafts",
            "send all rows from base_length on"
            if resent
            else "send what the target kept; if the text itself is another one at each run, decode "
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
        found = self._book.compare(full, base, decode_rows(request, session))
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
        self,
        request: draft_pb2.DraftRequest | None,
        judged: tuple[Planned, int] | None,
        pending: bool,
    ) -> None:
        """`accepted`, and that a refused token was there to be dropped. `pending`: a proposal whose
        tokens have not come yet."""
        if judged is not None and judged[0].has_wrong:
            self._evidence.saw("W-REJECTED-DROPPED")
        if request is None or not request.HasField("accepted"):
            return
        if judged is None and pending:
            return  # Told with the first of several calls; the tokens come with a later one.
        self._evidence.saw("W-ACCEPTED")
        if judged is None or not judged[0].delivered:
            self._violated(
                "W-ACCEPTED",
                f"accepted {request.accepted} without a proposal that was answered",
                "nothing",
                "leave it unset when the last proposal did not arrive",
            )
        elif judged[1] != request.accepted:
            self._violated(
                "W-ACCEPTED",
                f"accepted {request.accepted} where the tokens say {judged[1]}",
                "the tokens of the proposal that the target kept, without its own",
                "count leading draft tokens that are equal, bonus token not included",
            )


def _moved(text: list[int], place: int, new: list[int]) -> str:
    """Returns "behind" or "ahead" when `new` is what the text has one place off, else ""."""
    for shift, what in ((-1, "behind"), (1, "ahead")):
        first = place + shift
        # One token alone may be a coincidence.
        if len(new) > 1 and first >= 0 and text[first : first + len(new)] == new:
            return what
    return ""
