"""Loads heads of published sizes and drafts with them on the CPU; measures time and memory.

    build/venv/bin/python tests/fullsize/full_size.py --bin build/release/bin            # all
    build/venv/bin/python tests/fullsize/full_size.py --bin build/release/bin kimi_k2_5  # one

Writes each head and its target (4 to 6 GB) into --folder, drafts in each dtype, removes it again
and prints a table. The weights are random: there is nothing to learn from the tokens but that they
are there.

What a reader would get wrong: "weights" are what a draft reads, in the dtype it computes in: the
head's tensors without its maps, and the embedding, whoever owns it. The embedding stays in its file
and only looked-up rows come into memory, so the peak lies below the weights; `held` leaves it out,
and what goes beyond it is the code of LibTorch and buffers. The peak counts pages of mapped files
that were touched.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import shutil
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "testing"), str(TESTS / "oracle")]

import numpy as np

import head_logits_tool
import random_heads
import safetensors_stream as stream
import tensor_file
from head_plans import HeadPlan
from head_tensors import head_tensors
from published_sizes import FULL_SIZE

ROWS, DEPTHS = 16, 4
LARGEST_PEAK = 1.15  # of the weights' bytes
BASE_BYTES = 256 << 20  # of a process without weights
BYTES = {"float32": 4, "bfloat16": 2}


@dataclasses.dataclass(frozen=True)
class Measurement:
    name: str
    dtype: str
    held_bytes: int  # of the weights, those that are copied
    embedding_bytes: int
    peak_bytes: int
    seconds: float

    @property
    def ratio(self) -> float:
        return self.peak_bytes / (self.held_bytes + self.embedding_bytes)

    @property
    def too_large(self) -> bool:
        """A second copy of the largest tensor would show, of a small head as well."""
        held = LARGEST_PEAK * self.held_bytes + BASE_BYTES
        return not (self.ratio <= LARGEST_PEAK and self.peak_bytes <= held)

    def row(self) -> str:
        return (
            f"{self.name:16} {self.dtype:9} {(self.held_bytes + self.embedding_bytes) / 1e9:8.2f} "
            f"{self.held_bytes / 1e9:8.2f} {self.peak_bytes / 1e9:8.2f} {self.ratio:6.2f} "
            f"{self.peak_bytes / self.held_bytes:8.2f} {self.seconds:8.1f}"
        )


HEADER = (
    f"{'head':16} {'dtype':9} {'weights':>8} {'held':>8} {'peak GB':>8} {'ratio':>6} "
    f"{'of held':>8} {'seconds':>8}"
)


def held_bytes(plan: HeadPlan, dtype: str) -> int:
    total = 0
    for tensor in head_tensors(plan, random_heads.DEFAULT_SEED):
        if tensor.name not in ("d2t", "t2d", "embed_tokens.weight"):
            total += tensor.num_bytes // stream.BYTES_OF[tensor.dtype] * BYTES[dtype]
    return total


def measure(binaries: pathlib.Path, folder: pathlib.Path, name: str, dtype: str) -> Measurement:
    """Of a process of its own that loads the head, takes ROWS rows and drafts DEPTHS tokens."""
    plan = FULL_SIZE[name]
    rows = random_heads.make_rows(plan, ROWS)
    with tempfile.TemporaryDirectory() as scratch:
        recorded, answer = pathlib.Path(scratch, "rows"), pathlib.Path(scratch, "answer")
        tensor_file.write_tensors(
            recorded, {"aux": rows.aux, "tokens": rows.tokens}, as_bf16=frozenset({"aux"})
        )
        tool = str(binaries / head_logits_tool.TOOL)
        command = [tool, "--drafter", str(folder / "head"), "--target", str(folder / "target")]
        command += ["--input", str(recorded), "--output", str(answer)]
        command += ["--k", str(DEPTHS), "--dtype", dtype]
        start = time.monotonic()
        process = os.posix_spawn(tool, command, os.environ)
        _, status, usage = os.wait4(process, 0)  # of this child alone, unlike getrusage
        seconds = time.monotonic() - start
        if os.waitstatus_to_exitcode(status) != 0:
            raise SystemExit(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
        written = tensor_file.read_tensors(answer)
    logits, tokens = written["logits"], written["tokens"]
    assert logits.shape == (DEPTHS, plan.draft_vocab) and np.all(np.isfinite(logits))
    assert np.all((tokens >= 0) & (tokens < plan.vocab))
    embedding = plan.vocab * plan.hidden * stream.BYTES_OF[plan.dtype]
    peak = usage.ru_maxrss * 1024
    return Measurement(name, dtype, held_bytes(plan, dtype), embedding, peak, seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(FULL_SIZE)}; default: all")
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of the programs")
    parser.add_argument("--folder", type=pathlib.Path, default=None, help="where 6 GB are free")
    parser.add_argument("--dtype", choices=BYTES, action="append", help="default: both")
    parser.add_argument("--report-only", action="store_true", help="no limit on the peak")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(FULL_SIZE)
    if unknown:
        parser.error(f"no head is called {sorted(unknown)}; expected some of {list(FULL_SIZE)}")

    measured = []
    print(HEADER, flush=True)
    for name in arguments.names or FULL_SIZE:
        folder = pathlib.Path(tempfile.mkdtemp(prefix=name, dir=arguments.folder))
        try:
            random_heads.make_pair(folder, name)
            for dtype in arguments.dtype or BYTES:
                measured.append(measure(arguments.bin, folder, name, dtype))
                print(measured[-1].row(), flush=True)
        finally:
            shutil.rmtree(folder)
    too_large = [m for m in measured if m.too_large]
    for m in too_large:
        print(
            f"{m.name} in {m.dtype} peaks at {m.peak_bytes / 1e9:.2f} GB; expected at most "
            f"{LARGEST_PEAK} of its weights, and of those held, beside {BASE_BYTES / 1e9:.2f} GB; "
            "look for a second copy while loading"
        )
    return 1 if too_large and not arguments.report_only else 0


if __name__ == "__main__":
    sys.exit(main())
