"""What a conformance run found: one outcome a rule, as text and as JSON.

The JSON is described in docs/worker-contract.md; its `schema` grows when it changes.
"""

from __future__ import annotations

import dataclasses
import json
import textwrap
import threading

from aerie_draft.conformance.rules import ALL_RULES

SCHEMA = 1
PASS, FAIL, SKIP = "pass", "fail", "skip"
# Of one rule; a bug that shows at every round should not fill a screen.
_MOST_FINDINGS = 3


@dataclasses.dataclass(frozen=True)
class Finding:
    """In three parts, like every error message of Aerie."""

    where: str  # the scenario or the call
    seen: str
    expected: str
    remedy: str

    def __str__(self) -> str:
        return f"[{self.where}] {self.seen}; expected {self.expected}; {self.remedy}"


@dataclasses.dataclass(frozen=True)
class Outcome:
    rule: str
    result: str  # PASS, FAIL or SKIP
    observations: int  # how often the rule came into play
    findings: tuple[Finding, ...] = ()  # the first few; `violations` counts them all
    violations: int = 0
    why_skipped: str = ""


class Evidence:
    """Collects what is seen of each rule. Any thread."""

    def __init__(self):
        self._lock = threading.Lock()
        self._seen: dict[str, int] = {}
        self._findings: dict[str, list[Finding]] = {}
        self._violations: dict[str, int] = {}
        self._undecided: dict[str, str] = {}

    def saw(self, rule: str) -> None:
        """The rule came into play; without a violated() beside it, it was kept."""
        with self._lock:
            self._seen[rule] = self._seen.get(rule, 0) + 1

    def violated(self, rule: str, where: str, seen: str, expected: str, remedy: str) -> None:
        with self._lock:
            self._violations[rule] = self._violations.get(rule, 0) + 1
            findings = self._findings.setdefault(rule, [])
            if len(findings) < _MOST_FINDINGS:
                findings.append(Finding(where, seen, expected, remedy))

    def undecided(self, rule: str, why: str) -> None:
        """Says why a rule that was not seen could not be judged."""
        with self._lock:
            self._undecided[rule] = why

    def violations(self, rule: str) -> int:
        with self._lock:
            return self._violations.get(rule, 0)

    def outcomes(self, rules: list[str]) -> tuple[Outcome, ...]:
        with self._lock:
            return tuple(self._outcome(rule) for rule in rules)

    def _outcome(self, rule: str) -> Outcome:
        seen, violations = self._seen.get(rule, 0), self._violations.get(rule, 0)
        if violations:
            findings = tuple(self._findings[rule])
            return Outcome(rule, FAIL, max(seen, violations), findings, violations)
        if seen:
            return Outcome(rule, PASS, seen)
        why = self._undecided.get(rule) or f"it never came into play: needs {ALL_RULES[rule].needs}"
        return Outcome(rule, SKIP, 0, why_skipped=why)


@dataclasses.dataclass(frozen=True)
class Report:
    """`kind` is "worker" or "server"; `subject` names what was tested."""

    kind: str
    subject: str
    outcomes: tuple[Outcome, ...]

    @property
    def conformant(self) -> bool:
        return all(outcome.result != FAIL for outcome in self.outcomes)

    def failed(self) -> set[str]:
        return {outcome.rule for outcome in self.outcomes if outcome.result == FAIL}

    def passed(self) -> set[str]:
        return {outcome.rule for outcome in self.outcomes if outcome.result == PASS}

    def skipped(self) -> set[str]:
        return {outcome.rule for outcome in self.outcomes if outcome.result == SKIP}

    def text(self) -> str:
        lines = []
        for outcome in self.outcomes:
            lines.append(f"{outcome.result.upper():4}  {outcome.rule:22}{self._beside(outcome)}")
            for finding in outcome.findings:
                lines += textwrap.wrap(
                    str(finding), 100, initial_indent=" " * 6, subsequent_indent=" " * 8
                )
            hidden = outcome.violations - len(outcome.findings)
            if hidden > 0:
                lines.append(f"      and {hidden} more of the kind")
        counts = {r: sum(o.result == r for o in self.outcomes) for r in (PASS, FAIL, SKIP)}
        verdict = "conformant" if self.conformant else "NOT conformant"
        lines.append(
            f"{self.kind} {self.subject}: {verdict}; {counts[PASS]} rules kept, "
            f"{counts[FAIL]} broken, {counts[SKIP]} not seen"
        )
        return "\n".join(lines)

    def _beside(self, outcome: Outcome) -> str:
        if outcome.result == SKIP:
            return outcome.why_skipped
        return ALL_RULES[outcome.rule].says

    def json(self) -> str:
        return json.dumps(
            {
                "schema": SCHEMA,
                "kind": self.kind,
                "subject": self.subject,
                "conformant": self.conformant,
                "rules": [
                    {
                        "rule": outcome.rule,
                        "says": ALL_RULES[outcome.rule].says,
                        "result": outcome.result,
                        "observations": outcome.observations,
                        "violations": outcome.violations,
                        "findings": [dataclasses.asdict(f) for f in outcome.findings],
                        "why_skipped": outcome.why_skipped,
                    }
                    for outcome in self.outcomes
                ],
            },
            indent=2,
        )
