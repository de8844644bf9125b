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

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "testing"))

import numpy as np
import pytest

import closeness
import evaluation
import head_logits_tool
import tensor_file
import variant_oracles
from draft_chain import Sequence
from numpy_eagle3 import Head

_MEASURED = pytest.StashKey[dict]()


def pytest_configure(config):
    config.stash[_MEASURED] = {}
    config.addinivalue_line(
        "markers", "speculators: needs the PyPI package speculators; skipped where it is missing"
    )
    config.addinivalue_line("markers", "variants: the server's programs on every published variant")
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

    def check(actual, expected, limit, what, difference=closeness.largest_difference):
        worst = difference(actual, expected)
        # np.fmax would lose a NaN here, and max() may.
        before = measured.get(what, (0.0, limit))[0]
        measured[what] = (float(np.maximum(before, worst)), limit)
        return closeness.assert_close(actual, expected, limit, what, difference)

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


@pytest.fixture(scope="session")
def binaries() -> pathlib.Path:
    """The folder of the built programs. With AERIE_BIN set, a missing one is a failure."""
    if "AERIE_BIN" not in os.environ:
        pytest.skip("AERIE_BIN is not set; set it to the folder of the built programs")
    return _with_tool(head_logits_tool.TOOL)


@pytest.fixture(scope="session")
def inspector(binaries) -> pathlib.Path:
    """The same folder, once it is known to hold aerie-inspect."""
    return _with_tool(head_logits_tool.INSPECT)


def _with_tool(tool: str) -> pathlib.Path:
    folder = pathlib.Path(os.environ["AERIE_BIN"]).resolve()
    if not os.access(folder / tool, os.X_OK):
        pytest.fail(f"{folder} holds no {tool}; AERIE_BIN promises it; build it or unset AERIE_BIN")
    return folder


@pytest.fixture(scope="session")
def case_of(tmp_path_factory):
    """variant -> its head on disk, each written once."""
    cases = {}

    def make(name: str) -> variant_oracles.Case:
        if name not in cases:
            cases[name] = variant_oracles.make_case(tmp_path_factory.mktemp(name), name)
        return cases[name]

    return make


@pytest.fixture(scope="session")
def served(binaries, case_of):
    """(variant, dtype) -> the server's chain: logits [depths, Vd], tokens; each is run once."""
    known = {}

    def draft(name: str, dtype: str) -> tuple[np.ndarray, np.ndarray]:
        if (name, dtype) not in known:
            known[name, dtype] = case_of(name).server(binaries, dtype)
        return known[name, dtype]

    return draft
