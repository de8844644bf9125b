"""The rivals: a draft step of the same head in eager PyTorch, or through torch.compile (--compile),
float32, with a KV cache. Prints JSON.

    build/venv/bin/python tests/benchmarks/eager_step.py --drafter demo/drafter --target build/target

The head is put together from the package transformers by tests/oracle/huggingface_drafter.py, whose
logits are compared with the server's there. A step is one row: embedding, layer, norm, output
matrix and argmax. As everywhere here, the least of many times counts.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "oracle"))

import torch  # noqa: E402
from huggingface_drafter import HuggingFaceDrafter  # noqa: E402
from transformers import DynamicCache  # noqa: E402


class Stepper(HuggingFaceDrafter):
    """A sequence of `context` rows, and the same draft row behind it again and again."""

    @torch.inference_mode()
    def begin(self, context: int) -> None:
        width = self._fc.shape[1] if self._fc is not None else self._embedding.shape[1]
        self._context = context
        self._cache = DynamicCache()
        ids = torch.arange(context) % len(self._embedding)
        z = self._pass(self._fuse(torch.randn(context, width)), ids, 0, self._cache)
        self._hidden, self._id = z[-1:], ids[-1:]
        self._best = self._best_of

    def compile(self) -> None:
        self._best = torch.compile(self._best_of)

    def _best_of(self, hidden, ids):
        z = self._pass(hidden, ids, self._context, self._cache)
        return (self._norm(z) @ self._lm_head.T).argmax()

    @torch.inference_mode()
    def step(self) -> float:
        start = time.perf_counter()
        self._best(self._hidden, self._id).item()
        seconds = time.perf_counter() - start
        self._cache.crop(self._context)
        return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--drafter", type=pathlib.Path, required=True, help="folder of the head")
    parser.add_argument("--target", type=pathlib.Path, required=True, help="folder of its target")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--context", type=int, default=128, help="rows in front of the step")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--compile", action="store_true", help="through torch.compile")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(arguments.threads)
    stepper = Stepper(arguments.drafter, arguments.target)
    stepper.begin(arguments.context)
    if arguments.compile:
        stepper.compile()
    for _ in range(20):
        stepper.step()
    times = sorted(stepper.step() for _ in range(arguments.steps))
    figures = {
        "torch": torch.__version__,
        "compiled": arguments.compile,
        "threads": arguments.threads,
        "context": arguments.context,
        "step_us": times[0] * 1e6,
        "step_median_us": times[len(times) // 2] * 1e6,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
