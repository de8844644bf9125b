"""Runs `aerie-head-logits`, the server's own model code behind a file interface, and compares it.

By hand, for a table over the golden slots:

    build/venv/bin/python tests/oracle/compare_server_logits.py --bin build/release/bin

The tool reads `aux` [L, W] and `tokens` [L] (the token that follows row i, not the row's own) and
writes `logits` [K, Vd] and `tokens` [K] of the chain behind the last row.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import closeness
import evaluation
import tensor_file
from draft_chain import Sequence
from numpy_eagle3 import Head

TOOL = "aerie-head-logits"

# A tool that has not answered by then hangs; it needs about a second.
_HANGS_AFTER_SECONDS = 60


def run_tool(
    binaries: pathlib.Path, aux: np.ndarray, tokens: np.ndarray, k: int, rows_as_bf16: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """The tool's float32 chain behind the rows: logits [k, Vd] and target ids [k]."""
    with tempfile.TemporaryDirectory() as folder:
        rows, answer = (pathlib.Path(folder, name + ".safetensors") for name in ("rows", "answer"))
        tensor_file.write_tensors(
            rows,
            {"aux": aux, "tokens": tokens.astype(np.int32)},
            as_bf16=frozenset({"aux"} if rows_as_bf16 else ()),
        )
        command = [
            str(binaries / TOOL),
            *("--drafter", str(evaluation.drafter_folder())),
            *("--target", str(evaluation.target_folder())),
            *("--input", str(rows)),
            *("--k", str(k)),
            *("--dtype", "float32"),
            *("--output", str(answer)),
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_HANGS_AFTER_SECONDS, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(
                f"{' '.join(command)} ended with {done.returncode}; expected 0; it said:\n"
                f"{done.stdout}{done.stderr}"
            )
        written = tensor_file.read_tensors(answer)
    return written["logits"], written["tokens"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help=f"folder of {TOOL}")
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
