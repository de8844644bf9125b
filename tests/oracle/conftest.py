"""Fixtures of the oracle tests, and a table of every difference that they measured.

Paths come from AERIE_TARGET (default build/target), AERIE_DRAFTER (default demo/drafter) and, for
the C++ tool, AERIE_BIN.
"""

from __future__ import annotations

import os

# Before NumPy and torch read them. On a busy machine the threads of both wait for each other while
# spinning, and these small products gain nothing from a second one.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest

import closeness
import evaluation
import tensor_file
from draft_chain import Sequence
from numpy_eagle3 import Head

_MEASURED = pytest.StashKey[dict]()


def pytest_configure(config):
    config.stash[_MEASURED] = {}
    config.addinivalue_line(
        "markers", "speculators: needs the PyPI package speculators; skipped where it is missing"
    )
    # Said by specforge and torch at import, about code paths that no test here takes.
    for message in ("flash_attn is not found", r".*torch\.jit\.script_method. is deprecated"):
        config.addinivalue_line("filterwarnings", f"ignore:{message}")


def pytest_terminal_summary(terminalreporter, config):
    measured = config.stash[_MEASURED]
    if not measured:
        return
    terminalreporter.section("measured differences (largest of all cases, absolute)")
    for what, (worst, limit) in sorted(measured.items()):
        terminalreporter.write_line(f"{what:72} {worst:9.2e}  limit {limit:.0e}")


@pytest.fixture
def compare(request):
    """closeness.assert_close, whose result also enters the table at the end."""
    measured = request.config.stash[_MEASURED]

    def check(actual, expected, limit, what):
        worst = closeness.largest_difference(actual, expected)
        # np.fmax would lose a NaN here, and max() may.
        before = measured.get(what, (0.0, limit))[0]
        measured[what] = (float(np.maximum(before, worst)), limit)
        return closeness.assert_close(actual, expected, limit, what)

    return check


@pytest.fixture(scope="session")
def head() -> Head:
    return Head.load(evaluation.drafter_folder(), evaluation.target_folder())


@pytest.fixture(scope="session")
def recorded() -> list[evaluation.RecordedSequence]:
    return evaluation.sequences()


@pytest.fixture(scope="session")
def golden() -> dict[str, np.ndarray]:
    return tensor_file.read_tensors(evaluation.GOLDEN_LOGITS)


@pytest.fixture(scope="session")
def reference_draft(head, recorded):
    """(sequence, slot, k) -> the float64 reference's logits [k, Vd] and target ids [k]."""

    def draft(index: int, slot: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        sequence = Sequence(head)
        sequence.extend(*recorded[index].rows(slot))
        result = sequence.draft(k)
        return result.logits[0], result.tokens[0]

    return draft
