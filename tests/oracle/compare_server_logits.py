"""Runs `aerie-head-logits`, the server's own model code behind a file interface, and compares it.

By hand, for a table over the golden slots:

    build/venv/bin/python tests/oracle/compare_server_logits.py --bin build/release/bin
"""

from __future__ import annotations

import argparse
import pathlib
import sys

import numpy as np

import closeness
import evaluation
import head_logits_tool
from draft_chain import Sequence
from numpy_eagle3 import Head


def run_tool(
    binaries: pathlib.Path, aux: np.ndarray, tokens: np.ndarray, k: int, rows_as_bf16: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """The demo head's float32 chain behind the rows: logits [k, Vd] and target ids [k]."""
    folders = evaluation.drafter_folder(), evaluation.target_folder()
    return head_logits_tool.run(binaries, *folders, aux, tokens, k, rows_as_bf16=rows_as_bf16)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--bin", type=pathlib.Path, required=True, help=f"folder of {head_logits_tool.TOOL}"
    )
    parser.add_argument("--k", type=int, default=evaluation.GOLDEN_DEPTHS, help="draft depths")
    arguments = parser.parse_args()

    head = Head.load(evaluation.drafter_folder(), evaluation.target_folder())
    recorded = evaluation.sequences()
    limit, close = closeness.FLOAT32_AGAINST_REFERENCE, True
    print(f"largest difference to the float64 reference, by draft depth (limit {limit:.0e})")
    for index, slot in evaluation.GOLDEN_SLOTS:
        aux, tokens = recorded[index].rows(slot)
        logits, drafted = run_tool(arguments.bin, aux, tokens, arguments.k)
        rows = Sequence(head)
        rows.extend(aux, tokens)
        expected = rows.draft(arguments.k)
        worst = np.abs(logits - expected.logits[0]).max(axis=-1)
        same = drafted.tolist() == expected.tokens[0].tolist()
        close = close and same and bool(np.all(worst <= limit))
        by_depth = " ".join(f"{value:.1e}" for value in worst)
        print(f"sequence {index:2} slot {slot:3}: {by_depth}  same tokens: {same}")
    return 0 if close else 1


if __name__ == "__main__":
    sys.exit(main())
