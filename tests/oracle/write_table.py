"""Measures every variant against every oracle and writes the table of docs/checkpoints.md.

    build/venv/bin/python tests/oracle/write_table.py --bin build/release/bin

Without --bin it judges the float64 reference in the server's place and leaves the server's own two
columns open. Needs the packages of the oracles: transformers and specforge (tests/run installs
them), speculators (tests/run --all does). A column whose package is missing stops it, lest the
table forget an oracle. What stands in the table is checked by test_table.py, the numbers themselves
by test_variants.py.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import pathlib
import platform
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "testing"))

import numpy as np

import evaluation
import variant_oracles
from closeness import (
    BFLOAT16_RELATIVE,
    FLOAT32_AGAINST_FLOAT32,
    largest_difference,
    relative_difference,
)
from head_variants import VARIANTS
from variant_oracles import DEPTHS, ROWS, THIRD_PARTIES, along

DOCUMENT = evaluation.REPOSITORY / "docs" / "checkpoints.md"
BEGIN = "<!-- written by tests/oracle/write_table.py: begin -->"
END = "<!-- written by tests/oracle/write_table.py: end -->"
COLUMNS = ("variant", "layout", *THIRD_PARTIES, "float64 reference", "bf16, relative")
NOT_JUDGED = "–"


def measure(folder: pathlib.Path, name: str, binaries: pathlib.Path | None) -> list[str]:
    """One row of the table; every difference must be within its tolerance."""
    case = variant_oracles.make_case(folder, name)
    if binaries is None:
        draft = case.reference.draft(DEPTHS)
        logits, tokens = draft.logits[0], draft.tokens[0]
    else:
        logits, tokens = case.server(binaries, "float32")
    cells = [f"`{name}`", case.plan.layout]
    for oracle in THIRD_PARTIES:
        if variant_oracles.judges(oracle, case.plan):
            expected, _ = variant_oracles.third_party_draft(oracle, case, tokens)
            cells.append(_cell(name, largest_difference(logits, expected), FLOAT32_AGAINST_FLOAT32))
        else:
            cells.append(NOT_JUDGED)
    if binaries is None:
        return [*cells, NOT_JUDGED, NOT_JUDGED]
    expected = case.reference.draft(DEPTHS, forced=along(tokens)).logits[0]
    cells.append(_cell(name, largest_difference(logits, expected), FLOAT32_AGAINST_FLOAT32))
    logits, tokens = case.server(binaries, "bfloat16")
    expected = case.reference.draft(DEPTHS, forced=along(tokens)).logits[0]
    cells.append(_cell(name, relative_difference(logits, expected), BFLOAT16_RELATIVE))
    return cells


def _cell(name: str, difference: float, limit: float) -> str:
    if not difference <= limit:
        raise SystemExit(f"{name}: difference {difference:.2e}; expected at most {limit:.0e}")
    return f"{difference:.0e}" if limit < BFLOAT16_RELATIVE else f"{100 * difference:.1f} %"


def render(rows: list[list[str]], judged: str) -> str:
    versions = ", ".join(
        f"{package} {importlib.metadata.version(package)}"
        for package in (*THIRD_PARTIES, "torch", "numpy")
    )
    lines = [
        f"Largest difference between the logits of {judged} and those of each oracle, at draft "
        f"depths 1 to {DEPTHS} behind {ROWS} rows.",
        "Heads of `tests/testing/random_heads.py`, whose logits reach about 5. In float32 at most "
        f"{FLOAT32_AGAINST_FLOAT32:.0e}, absolute; in bfloat16",
        f"at most {100 * BFLOAT16_RELATIVE:.0f} % of the root mean square of the logits. "
        f"“{NOT_JUDGED}”: the package has no code for this head.",
        f"Measured with Python {platform.python_version()}, {versions}.",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "| " + " | ".join(["---"] * len(COLUMNS)) + " |",
    ]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def table_of(document: str) -> list[list[str]]:
    """The cells between the markers, without the heading."""
    part = document.split(BEGIN)[1].split(END)[0]
    rows = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, help="folder of the programs")
    binaries = parser.parse_args().bin
    binaries = binaries and binaries.resolve()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in VARIANTS:
            rows.append(measure(pathlib.Path(folder, name), name, binaries))
            print(" | ".join(rows[-1]), flush=True)
    judged = "the server" if binaries else "the float64 reference"
    text = DOCUMENT.read_text()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    DOCUMENT.write_text(f"{before}{BEGIN}\n{render(rows, judged)}\n{END}{after}")
    print(f"wrote {DOCUMENT}")
    return 0


if __name__ == "__main__":
    np.seterr(all="raise", under="ignore")
    sys.exit(main())
