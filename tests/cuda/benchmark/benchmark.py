"""Measures drafters on a CUDA device and writes one JSON object; tests/cuda/run calls it.

    tests/cuda/benchmark/benchmark.py --program build/cuda/bin/aerie-cuda-benchmark --json FILE

What a reader would get wrong: each ratio is of two times of one program run on one device, and a
ratio that could not be measured is null, with the reason under `missing`. The large head is random
and of the size that goes with a target of 8 B parameters: its weights are there to be read.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import subprocess
import sys
import time
from collections.abc import Sequence

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/testing"), str(ROOT / "tests/testing/heads")]

LEAST_SECONDS = 5.0  # of a program run; with less it would load weights and measure nothing


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One run of the program."""

    head: str  # "8b" or "demo"
    dtype: str
    contexts: str = "128,2048,8192"

    @property
    def name(self) -> str:
        return f"{self.head} {self.dtype}"


# The most telling first: time may run out.
PLAN = (
    Measurement("8b", "bfloat16"),
    Measurement("8b", "int8", contexts="128"),
    Measurement("8b", "fp8", contexts="128"),
    Measurement("demo", "bfloat16"),
    Measurement("demo", "int8", contexts="128"),
)


def step(runs: dict, head: str, dtype: str, batch: int = 1, graphs: bool = True) -> dict:
    """The entry at context 128; KeyError with the reason when there is none."""
    name = f"{head} {dtype}"
    if name not in runs:
        raise KeyError(f"{name} was not run")
    for entry in runs[name]["steps"]:
        if (entry["context"], entry["batch"], entry["graphs"]) == (128, batch, graphs):
            return entry
    raise KeyError(f"{name} has no step of batch {batch} at context 128")


def extend(runs: dict, head: str, rows: int) -> dict:
    name = f"{head} bfloat16"
    if name not in runs:
        raise KeyError(f"{name} was not run")
    for entry in runs[name]["extends"]:
        if entry["rows"] == rows:
            return entry
    raise KeyError(f"{name} has no extend of {rows} rows")


def ratios(runs: dict) -> tuple[dict, dict]:
    """What the detail amounts to, and the reason for each that is null."""
    wanted = {
        "step_over_floor_b1_8b": lambda: step(runs, "8b", "bfloat16")["step_over_floor"],
        "step_over_floor_b1_8b_int8": lambda: step(runs, "8b", "int8")["step_over_floor"],
        "step_over_floor_b1_8b_fp8": lambda: step(runs, "8b", "fp8")["step_over_floor"],
        "step_over_floor_b1": lambda: step(runs, "demo", "bfloat16")["step_over_floor"],
        "step_over_floor_b1_int8": lambda: step(runs, "demo", "int8")["step_over_floor"],
        "no_graphs_over_graphs_b1_8b": lambda: step(runs, "8b", "bfloat16", graphs=False)["step_us"]
        / step(runs, "8b", "bfloat16")["step_us"],
        "b8_over_b1_8b": lambda: step(runs, "8b", "bfloat16", batch=8)["step_us"]
        / step(runs, "8b", "bfloat16")["step_us"],
        "extend512_of_product_8b": lambda: extend(runs, "8b", 512)["of_product"],
    }
    values: dict[str, float | None] = {}
    missing = {}
    for key, compute in wanted.items():
        try:
            values[key] = compute()
        except KeyError as error:
            values[key] = None
            missing[key] = error.args[0]
    return values, missing


def assemble(runs: dict, left_out: Sequence[str]) -> dict:
    """`runs`: by name, what the program printed."""
    first = next(iter(runs.values()), {})
    of_device = ("device", "capability", "bandwidth_gb_s", "product_tflops")
    values, missing = ratios(runs)
    everything = list(left_out)
    for name, run in runs.items():
        everything += [f"{name}: {what}" for what in run["left_out"]]
    return (
        {key: first.get(key) for key in of_device}
        | values
        | {"missing": missing, "left_out": everything, "detail": runs}
    )


def large_head(folder: pathlib.Path) -> pathlib.Path:
    """`folder` with head and target, written when they are not there: 1.1 GB."""
    import random_heads
    from published_sizes import FULL_SIZE

    done = folder / "complete"
    if not done.exists():
        plan = dataclasses.replace(
            FULL_SIZE["llama_3_1_8b"], dtype="BF16", vocab=32768, max_positions=16384
        )
        random_heads.make_head(folder / "head", plan)
        random_heads.make_target(folder / "target", plan)
        done.write_text("both folders\n")
    return folder


def run_program(words: Sequence[str], most_seconds: float) -> dict | str:
    """What it printed, or why there is nothing."""
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, check=False, timeout=most_seconds)
    except subprocess.TimeoutExpired:
        return f"it was stopped after {most_seconds:.0f} s"
    if done.returncode != 0:
        return f"it ended with {done.returncode}; see what it said above"
    return json.loads(done.stdout)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--program", required=True, help="aerie-cuda-benchmark")
    parser.add_argument("--json", required=True, type=pathlib.Path, help="file to write")
    parser.add_argument("--target", type=pathlib.Path, default=ROOT / "build/target",
                        help="of the demo's head, which is left out without it")
    parser.add_argument("--heads", type=pathlib.Path, default=ROOT / "build/cuda-benchmark",
                        help="folder for the large random head, 1.1 GB, kept for the next time")
    parser.add_argument("--device", default="cuda:0", help="as aerie-cuda-benchmark has it")
    parser.add_argument("--seconds", type=float, default=150.0,
                        help="nothing is begun when they are over")
    parser.add_argument("--only", default="8b,demo", help="heads, comma-separated")
    flags, passed_on = parser.parse_known_args(arguments)
    heads = flags.only.split(",")
    if unknown := [head for head in heads if head not in ("8b", "demo")]:
        parser.error(f"--only names \"{unknown[0]}\"; expected 8b, demo or both; correct it")

    end = time.monotonic() + flags.seconds
    runs: dict[str, dict] = {}
    left_out: list[str] = []
    for measurement in PLAN:
        if measurement.head not in heads:
            continue
        if measurement.head == "demo":
            head, target = ROOT / "demo/drafter", flags.target
            if not (target / "config.json").exists():
                left_out.append(f"{measurement.name}: there is no target in {target}")
                continue
        else:
            if end - time.monotonic() < LEAST_SECONDS:
                left_out.append(f"{measurement.name}: no time was left")
                continue
            folder = large_head(flags.heads)
            head, target = folder / "head", folder / "target"
        left = end - time.monotonic()
        if left < LEAST_SECONDS:
            left_out.append(f"{measurement.name}: no time was left")
            continue
        # Loading and the pass that is being measured come on top of what the program keeps to.
        result = run_program(
            [flags.program, "--drafter", str(head), "--target", str(target), "--device", flags.device,
             "--dtype", measurement.dtype, "--contexts", measurement.contexts,
             "--seconds", f"{0.8 * left:.1f}", *passed_on],
            left + LEAST_SECONDS,
        )
        if isinstance(result, str):
            left_out.append(f"{measurement.name}: {result}")
        else:
            runs[measurement.name] = result
    out = assemble(runs, left_out)
    flags.json.parent.mkdir(parents=True, exist_ok=True)
    flags.json.write_text(json.dumps(out, indent=1) + "\n")
    print(json.dumps({key: value for key, value in out.items() if key != "detail"}, indent=1))
    if not runs:
        print("benchmark: nothing was measured; expected one run at least; see left_out above",
              file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
