"""Runs `aerie-head-logits`, the server's own model behind a file interface, and `aerie-inspect`.

The first reads `aux` [L, W] and `tokens` [L] (the token that follows row i, not the row's own) and
writes `logits` [k, Vd] and `tokens` [k] of the greedy chain behind the last row. Both end with
another code than 0 on a head that they refuse; that is an answer here, not a fault.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import tempfile

import numpy as np

import tensor_file

TOOL = "aerie-head-logits"
INSPECT = "aerie-inspect"
TOOLS = (TOOL, INSPECT)

# Who has not answered by then hangs; it needs about a second.
_HANGS_AFTER_SECONDS = 120


class Refused(Exception):
    """The tool would not draft with this head; the message is what it said."""


def run(
    binaries: pathlib.Path,
    drafter: pathlib.Path,
    target: pathlib.Path,
    aux: np.ndarray,
    tokens: np.ndarray,
    k: int,
    dtype: str = "float32",
    rows_as_bf16: bool = True,
    flags: tuple[str, ...] = (),
) -> tuple[np.ndarray, np.ndarray]:
    """Logits [k, Vd] and target ids [k] of the chain behind the rows. Raises Refused."""
    with tempfile.TemporaryDirectory() as folder:
        rows, answer = (pathlib.Path(folder, name + ".safetensors") for name in ("rows", "answer"))
        tensor_file.write_tensors(
            rows,
            {"aux": aux, "tokens": tokens.astype(np.int32)},
            as_bf16=frozenset({"aux"} if rows_as_bf16 else ()),
        )
        command = [
            str(binaries / TOOL),
            *("--drafter", str(drafter)),
            *("--target", str(target)),
            *("--input", str(rows)),
            *("--k", str(k)),
            *("--dtype", dtype),
            *("--output", str(answer)),
            *flags,
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_HANGS_AFTER_SECONDS, check=False
        )
        said = (
            f"{' '.join(command)} ended with {done.returncode}; it said:\n"
            f"{done.stdout}{done.stderr}"
        )
        if done.returncode < 0:
            raise RuntimeError(said)  # killed by a signal: no way to refuse
        if done.returncode != 0:
            raise Refused(said)
        written = tensor_file.read_tensors(answer)
    return written["logits"], written["tokens"]


def inspect(
    binaries: pathlib.Path, drafter: pathlib.Path, target: pathlib.Path, flags: tuple[str, ...] = ()
) -> dict:
    """What `aerie-inspect --json` says of a head; checks that the exit code agrees with it."""
    command = [str(binaries / INSPECT), str(drafter), "--target", str(target), "--json", *flags]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_HANGS_AFTER_SECONDS, check=False
    )
    if done.returncode not in (0, 2):
        raise RuntimeError(
            f"{' '.join(command)} ended with {done.returncode}; expected 0 or 2; it said:\n"
            f"{done.stdout}{done.stderr}"
        )
    report = json.loads(done.stdout)
    assert report["ok"] == (done.returncode == 0), (report, done.returncode)
    return report
