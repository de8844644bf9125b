"""llama.cpp's draft step beside ours: files converted once, both timed in turns.

What a reader would get wrong: llama.cpp tells sums, so what counts of it is the least mean of a
request's passes; of ours it is the median of steps, which no luck of a single one makes better.
Its pass is of one row and ends with the best token, as our step does.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import llamacpp_log

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "demo"))

from llama_cpp import convert  # noqa: E402

# How the head lies in GGUF, by the compute dtype of ours that reads as many bytes.
GGUF_TYPES = {"bfloat16": "bf16", "int8": "q8_0", "float32": "f32"}
K = 16


class Rival:
    """The demo's head in every type. `folder`: build/llamacpp, made by cmake/setup_llamacpp.sh."""

    def __init__(self, folder: pathlib.Path, drafter: pathlib.Path, target: pathlib.Path):
        self._python = folder / "venv/bin/python"
        work = ROOT / "build/benchmarks/llamacpp"
        work.mkdir(parents=True, exist_ok=True)
        # The target only says what there is to draft from; a small one is read sooner.
        self._target = self._converted(folder, target, work / "target.gguf", "q8_0")
        flags = ("--target-model-dir", target)
        self._heads = {
            dtype: self._converted(folder, drafter, work / f"head-{kind}.gguf", kind, *flags)
            for dtype, kind in GGUF_TYPES.items()
        }

    @staticmethod
    def _converted(folder, model, output: pathlib.Path, kind: str, *flags) -> pathlib.Path:
        weights = model / "model.safetensors"
        if not output.exists() or output.stat().st_mtime < weights.stat().st_mtime:
            partial = output.with_suffix(".partial")
            convert(folder, model, partial, *flags, outtype=kind)
            partial.replace(output)
        return output

    def passes(self, dtype: str) -> dict:
        """Microseconds of passes of the head, as means of requests. RuntimeError: it failed."""
        command = [self._python, ROOT / "tests/benchmarks/llamacpp_drafts.py"]
        command += ["--target", self._target, "--drafter", self._heads[dtype], "--k", K]
        done = subprocess.run(
            [str(word) for word in command],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(
                f"llama.cpp ended with {done.returncode}; expected drafts; its log ends with:\n"
                + done.stderr[-2000:]
            )
        means = sorted(llamacpp_log.pass_us(llamacpp_log.drafting(done.stderr), K))
        return {
            "gguf_type": GGUF_TYPES[dtype],
            "requests": len(means),
            "pass_us": means[0],
            "pass_median_us": means[len(means) // 2],
            "build": llamacpp_log.build(done.stderr),
        }


def measure(turns: int, drafter: pathlib.Path, target: pathlib.Path, step_median_us, out: dict):
    """`step_median_us(dtype)`: the median of our steps in a turn. Fills in `out`."""
    folder = ROOT / "build/llamacpp"
    if not (folder / "venv/bin/python").exists():
        out["llamacpp_reason"] = (
            f"{folder} is not there; expected llama.cpp in it; run without --no-setup where pip "
            "reaches its registry"
        )
        return
    rival = Rival(folder, drafter, target)
    detail = {dtype: {"ours_us": [], "llamacpp": []} for dtype in GGUF_TYPES}
    for _ in range(turns):
        for dtype, taken in detail.items():
            taken["ours_us"].append(step_median_us(dtype))
            taken["llamacpp"].append(rival.passes(dtype))
    for taken in detail.values():
        taken["ratio"] = min(turn["pass_us"] for turn in taken["llamacpp"]) / min(taken["ours_us"])
    out["llamacpp_over_step_b1"] = detail["bfloat16"]["ratio"]
    out["llamacpp_over_step_b1_int8"] = detail["int8"]["ratio"]
    out["detail"]["llamacpp"] = detail
