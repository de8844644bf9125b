"""Runs a worker under test through the scenarios and judges what arrived.

The worker is any callable that decodes the same text once, greedily, with drafts from the address
it is given: it may start a process, or ask an engine that runs already.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence

from aerie_draft.conformance.report import Evidence, Report
from aerie_draft.conformance.rules import WORKER_RULES
from aerie_draft.conformance.scenarios import PLAIN, Scenario, scenarios_for
from aerie_draft.conformance.shape import DrafterShape
from aerie_draft.conformance.strict_server import StrictService
from aerie_draft.conformance.strict_wire import StrictWire
from aerie_draft.conformance.texts import Texts

# Which rule a worker breaks that does not survive a scenario.
_SURVIVES = {
    "plain": "W-FAIL-OPEN",
    "drafts": "W-VERIFY",
    "short-drafts": "W-SHORT-DRAFT",
    "context-limit": "W-CONTEXT-LIMIT",
    "newer-server": "W-NEWER-SERVER",
}


@dataclasses.dataclass(frozen=True)
class WorkerRun:
    """How one run of the text ended. `output` is compared when that was asked for."""

    exit_code: int
    output: str = ""
    trouble: str = ""  # the end of what it said beside the output


class WorkerFailed(Exception):
    """The worker did not even decode without drafts, and no rule says why."""


@dataclasses.dataclass(frozen=True)
class WorkerSettings:
    listen: str = "127.0.0.1:0"
    rules: frozenset[str] | None = None  # None: all
    scenarios: frozenset[str] | None = None  # None: those that the rules need
    texts: tuple[Sequence[int], ...] = ()  # whole token sequences that are known beforehand
    same_output: bool = False
    expected_output: str | None = None
    max_k: int = 8
    row_tolerance: float = 0.05
    patience: float = 30.0  # seconds that an answer is held back
    comeback: float = 10.0  # seconds within which a worker has to ask again
    settle: float = 5.0  # seconds that closing may take after the text has ended


def check_worker(
    run: Callable[[str, Scenario], WorkerRun],
    shape: DrafterShape,
    settings: WorkerSettings = WorkerSettings(),
    subject: str = "",
    progress: Callable[[str], None] = lambda line: None,
) -> Report:
    """Calls run(address, scenario) once a scenario. WorkerFailed when `plain` fails."""
    evidence = Evidence()
    texts = Texts(settings.texts)
    service = StrictService(
        shape,
        evidence,
        texts,
        max_k=settings.max_k,
        row_tolerance=settings.row_tolerance,
        comeback=settings.comeback,
    )
    rules = None if settings.rules is None else set(settings.rules)
    names = None if settings.scenarios is None else set(settings.scenarios)
    outputs: dict[str, str] = {}
    with StrictWire(service, evidence, settings.listen, settings.patience) as wire:
        for scenario in scenarios_for(rules, names):
            progress(f"{scenario.name}: {scenario.summary}")
            wire.begin(scenario)
            result = run(wire.address, scenario)
            if result.exit_code == 0:
                _settle(service, settings.settle)
            service.end(failed=result.exit_code != 0)
            if result.exit_code == 0:  # What a failed run said is no text.
                outputs[scenario.name] = result.output
            _judge_run(evidence, scenario, result)
            if scenario is PLAIN:
                _judge_plain(evidence, service, texts, result)
                if evidence.violations("W-PAIRING"):
                    break  # What was learned is not the text: the rest would be noise.
    _judge_outputs(evidence, outputs, settings)
    asked = [rule for rule in WORKER_RULES if rules is None or rule in rules]
    return Report("worker", subject, evidence.outcomes(asked))


def _settle(service: StrictService, patience: float) -> None:
    """An engine may close its sessions a little after it gave the text."""
    end = time.monotonic() + patience
    while service.open_sessions() and time.monotonic() < end:
        time.sleep(0.01)


def _judge_run(evidence: Evidence, scenario: Scenario, result: WorkerRun) -> None:
    rule = _SURVIVES.get(scenario.name, "W-FAIL-OPEN")
    if scenario.faulty and rule == "W-FAIL-OPEN":
        evidence.saw(rule)
    if result.exit_code != 0 and scenario is not PLAIN:
        evidence.violated(
            rule,
            scenario.name,
            f"the worker ended with {result.exit_code}: {result.trouble}",
            "0, with its text decoded",
            "a draft is help, not a need: decode the round without it",
        )


def _judge_plain(evidence, service, texts: Texts, result: WorkerRun) -> None:
    broken = [rule for rule in WORKER_RULES if evidence.violations(rule)]
    if not broken and (result.exit_code != 0 or not len(texts)):
        raise WorkerFailed(
            f"the worker ended with {result.exit_code} and sent the rows of {len(texts)} texts in "
            "the scenario without drafts; expected 0, and a text; see what it says, and whether "
            f"it was given the strict server's address: {result.trouble}"
        )
    verdict, numbers = service.pairing.verdict(), service.pairing.numbers()
    if verdict == "right":
        evidence.saw("W-PAIRING")
    elif verdict is not None:
        evidence.violated(
            "W-PAIRING",
            PLAIN.name,
            f"rows whose states resemble each other as if tokens were one position {verdict} "
            f"(distances: {numbers})",
            "states that resemble each other when the token in front of the row's is the same",
            "pair the state of position i with token i + 1",
        )
    else:
        evidence.undecided(
            "W-PAIRING",
            f"rows do not tell (distances: {numbers}); give a longer text, or the token ids with "
            "--texts",
        )


def _judge_outputs(evidence, outputs: dict[str, str], settings: WorkerSettings) -> None:
    expected = settings.expected_output
    if expected is None and settings.same_output:
        expected = outputs.get(PLAIN.name)
    if expected is None:
        return
    for name, output in outputs.items():
        evidence.saw("W-OUTPUT")
        if output != expected:
            at = next(
                (i for i, (a, b) in enumerate(zip(output, expected)) if a != b),
                min(len(output), len(expected)),
            )
            evidence.violated(
                "W-OUTPUT",
                name,
                f"output that goes {output[at : at + 40]!r} from character {at}",
                repr(expected[at : at + 40]),
                "the text must not depend on drafts; look for tokens taken without being verified",
            )
