"""The strict server's rounds: what it proposes, what came of it, and the texts it learns from.

It knows the worker's text, so it knows beforehand how many tokens of a proposal have to be kept.
"""

from __future__ import annotations

from aerie_draft._proto import draft_pb2
from aerie_draft.conformance.proposals import fill_tree, plan, wanted_right
from aerie_draft.conformance.report import Evidence
from aerie_draft.conformance.row_checks import Pairing, decode
from aerie_draft.conformance.scenarios import Scenario
from aerie_draft.conformance.shape import DrafterShape
from aerie_draft.conformance.strict_session import StrictSession
from aerie_draft.conformance.text_checks import TextChecks
from aerie_draft.conformance.texts import Texts

UNKNOWN_ENUM = 99  # in no enum of the contract


class Rounds:
    """The strict server's lock guards it."""

    def __init__(self, shape: DrafterShape, evidence: Evidence, texts: Texts, checks: TextChecks):
        self._shape = shape
        self._evidence = evidence
        self._texts = texts
        self._checks = checks
        self.pairing = Pairing()

    def begin(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._proposals = 0
        # Proposals that began with right tokens: whether these were kept. One that was not may
        # have come too late for its worker, so that the many decide.
        self._kept = [0, 0]
        self._kept_after_hold = [0, 0]

    def end(self) -> None:
        for rule, (missed, kept), expected, remedy in (
            (
                "W-VERIFY",
                self._kept,
                "them to be kept",
                "verify draft token i against the target's choice behind draft token i - 1, the "
                "first one behind the newest token",
            ),
            (
                "W-LATE-DRAFT",
                self._kept_after_hold,
                "them to be kept: the late answer belongs to no call that still waits",
                "match answers by id, and drop those nobody waits for",
            ),
        ):
            if missed > kept:
                self._evidence.violated(
                    rule,
                    self._scenario.name,
                    f"{missed} of {kept + missed} proposals began with tokens of the worker's own "
                    "text that it did not keep",
                    expected,
                    remedy,
                )

    def propose(self, session: StrictSession, k: int, response: draft_pb2.DraftResponse) -> None:
        """Fills `response`."""
        if not k:
            response.no_draft_reason = draft_pb2.NO_DRAFT_REASON_NOT_ASKED
            return
        scenario = self._scenario
        count = right = 0
        if scenario.right:
            how = scenario.right[self._proposals % len(scenario.right)]
            count, right = k, wanted_right(how, k)
            if scenario.short:
                count = (k // 2, max(k - 1, 1), 0, 1)[self._proposals % 4]
                if k > 1:
                    self._evidence.saw("W-SHORT-DRAFT")
            self._proposals += 1
        rest = self._texts.continuation(session.tokens, session.start)
        tree = session.options.tree if session.options.HasField("tree") else None
        planned = plan(session.length, rest, count, right, self._shape.vocab_size, tree)
        planned.after_hold = session.held_back
        fill_tree(planned, session.options, response)
        if len(planned.tokens) < k and tree is None:
            response.no_draft_reason = draft_pb2.NO_DRAFT_REASON_DEADLINE
        if scenario.newer and not planned.tokens:
            response.no_draft_reason = UNKNOWN_ENUM
        if session.options.adaptive_k:
            response.k_choice.k = len(planned.tokens)
        record = session.record
        record.num_spec_tokens = max(record.num_spec_tokens, len(planned.tokens))
        session.planned = planned if planned.tokens else None

    def past_context(
        self, session: StrictSession, request: draft_pb2.DraftRequest
    ) -> draft_pb2.DraftResponse:
        """As a real server's: no rows are taken any more, and where calls begin is no matter."""
        self._evidence.saw("W-CONTEXT-LIMIT")
        session.planned = None
        return draft_pb2.DraftResponse(
            seq=request.seq,
            length=session.length,
            no_draft_reason=draft_pb2.NO_DRAFT_REASON_CONTEXT_LIMIT,
        )

    def judge(
        self, session: StrictSession, full: list[int], request: draft_pb2.DraftRequest | None
    ) -> int | None:
        """How much of the open proposal the tokens `full` kept; None without one to judge."""
        judged = session.judge(full)
        if not session.diverged:
            self._checks.outcome(request, judged, pending=session.planned is not None)
        if judged is None:
            return None
        planned, kept = judged
        rest = self._texts.continuation(full[: planned.at - session.start], session.start)
        # At the end of the text the worker may have room for fewer tokens.
        if not planned.right or len(rest) <= planned.right or session.diverged:
            return kept
        whole = kept >= planned.right
        if self._scenario.name == "drafts":
            self._evidence.saw("W-VERIFY")
            self._kept[whole] += 1
        if planned.after_hold:
            self._evidence.saw("W-LATE-DRAFT")
            self._kept_after_hold[whole] += 1
        return kept

    def final_tokens(self, session: StrictSession, full: list[int]) -> None:
        """What a close has to bring; `full` is with it."""
        planned = session.planned
        if planned is None or not planned.delivered:
            return
        if session.resend_from is not None or session.diverged:
            return
        self._evidence.saw("W-FINAL-TOKENS")
        text, shared = self._texts.nearest(full, session.start)
        known = text[session.start :]
        if len(full) == len(session.tokens) and len(known) > len(full):
            seen = "no tokens behind the last proposal"
        elif shared < min(len(full), len(known)):
            seen = f"final token {full[shared]} where the text has {known[shared]}"
        else:
            return
        self._evidence.violated(
            "W-FINAL-TOKENS",
            self._scenario.name,
            f"a close that brings {seen}",
            "the tokens committed since the last Draft call, once",
            "give them as final_token_ids; they need no states",
        )

    def learn(self, session: StrictSession, tokens: list[int]) -> None:
        """Takes over a session's text, and what its rows say about their pairing."""
        if session.start == 0 and tokens:
            self._texts.learn(tokens)
        if not session.rows:
            return
        width = self._shape.hidden_size
        rows = decode(b"".join(session.rows), session.manifest.dtype, self._shape.row_width)
        first = self._shape.lowest * width
        self.pairing.add(session.tokens, rows[:, first : first + width])
        session.rows = []
