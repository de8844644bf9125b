"""Workers under test as processes, or as something that a person starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence

from aerie_draft.conformance.scenarios import Scenario
from aerie_draft.conformance.worker_suite import WorkerRun

_TAIL = 1500  # characters of what a failed worker said


def run_command(command: Sequence[str], timeout: float) -> Callable[[str, Scenario], WorkerRun]:
    """Starts `command` for each scenario, and kills it after `timeout` seconds."""

    def run(address: str, scenario: Scenario) -> WorkerRun:
        words = [word.replace("{address}", address) for word in command]
        environment = {**os.environ, "AERIE_ADDRESS": address, "AERIE_SCENARIO": scenario.name}
        try:
            ended = subprocess.run(
                words,
                env=environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return WorkerRun(-1, trouble=f"it had not ended after {timeout:g} s and was killed")
        return WorkerRun(ended.returncode, ended.stdout, ended.stderr[-_TAIL:].strip())

    return run


def run_when_asked() -> Callable[[str, Scenario], WorkerRun]:
    """Asks a person, or a script on the other end of standard input, to decode the text."""

    def run(address: str, scenario: Scenario) -> WorkerRun:
        print(
            f"{scenario.name}: decode the text with drafts from {address}, then press Enter",
            file=sys.stderr,
            flush=True,
        )
        line = sys.stdin.readline()
        if not line:
            raise OSError(
                "standard input ended; expected a line after each scenario's text; keep it open"
            )
        return WorkerRun(0)

    return run
