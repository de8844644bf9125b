"""Records tests/golden/demo_logits.{safetensors,json} from the float64 reference.

Run it only when the demo head, the target or the recording changed:

    build/venv/bin/python tests/oracle/record_golden.py

The choice of slots keeps clear of near-ties: a program in float32 must choose the same tokens, or
its chain diverges and every deeper comparison is meaningless. The script refuses slots that do not.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import pathlib
import platform

import numpy as np

import evaluation
import tensor_file
from draft_chain import Sequence
from numpy_eagle3 import Head

# Ten times the difference that any compared program may show.
SMALLEST_MARGIN = 2e-3


def margins(logits: np.ndarray) -> np.ndarray:
    """Best logit minus the second best, over the last axis."""
    best_two = np.partition(logits, -2, axis=-1)[..., -2:]
    return best_two[..., 1] - best_two[..., 0]


def sha256(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=pathlib.Path, default=evaluation.GOLDEN_LOGITS)
    output = parser.parse_args().output

    drafter = evaluation.drafter_folder()
    head = Head.load(drafter, evaluation.target_folder())
    recorded = evaluation.sequences()

    drafts, cases = [], []
    for index, slot in evaluation.GOLDEN_SLOTS:
        sequence = Sequence(head)
        sequence.extend(*recorded[index].rows(slot))
        draft = sequence.draft(evaluation.GOLDEN_DEPTHS)
        margin = margins(draft.logits[0])
        if not margin.min() >= SMALLEST_MARGIN:
            raise SystemExit(
                f"sequence {index} slot {slot}: the best two logits are {margin.min():.2e} apart; "
                f"expected {SMALLEST_MARGIN} or more at every depth; choose another slot in "
                "evaluation.GOLDEN_SLOTS"
            )
        drafts.append(draft)
        cases.append(
            {
                "sequence": index,
                "slot": slot,
                "tokens": draft.tokens[0].tolist(),
                "log_probs": [round(float(p), 6) for p in draft.log_probs[0]],
                "smallest_margin": round(float(margin.min()), 6),
            }
        )

    tensor_file.write_tensors(
        output,
        {
            "sequence": np.array([case["sequence"] for case in cases], np.int32),
            "slot": np.array([case["slot"] for case in cases], np.int32),
            "logits": np.concatenate([d.logits for d in drafts]).astype(np.float32),
            "tokens": np.concatenate([d.tokens for d in drafts]).astype(np.int32),
            "log_probs": np.concatenate([d.log_probs for d in drafts]).astype(np.float32),
        },
        {"recorded_by": "tests/oracle/record_golden.py"},
    )
    notes = {
        "what": "logits of the demo head at draft depths 1 to 5 behind rows 0..slot of sequences "
        "of eval/recording.safetensors; greedy chain, the un-normed output fed back",
        "tensors": {
            "sequence, slot": "[cases] int32: rows 0..slot of that sequence; row i pairs its aux "
            "row i with its token i+1",
            "logits": "[cases, depths, draft vocabulary] float32, rounded from float64",
            "tokens": "[cases, depths] int32, target ids: argmax + d2t[argmax]",
            "log_probs": "[cases, depths] float32: log softmax over the draft vocabulary of the "
            "chosen token, temperature 1",
        },
        "recorded_by": {
            "program": "tests/oracle/record_golden.py, numpy_eagle3.py, draft_chain.py; float64",
            "python": platform.python_version(),
            "numpy": np.__version__,
            "safetensors": importlib.metadata.version("safetensors"),
        },
        "inputs": {
            "drafter_sha256": sha256(drafter / "model.safetensors"),
            "recording_sha256": sha256(evaluation.RECORDING),
            "target_embedding_float32_sha256": hashlib.sha256(
                np.ascontiguousarray(head.embedding, np.float32).tobytes()
            ).hexdigest(),
        },
        "cases": cases,
    }
    output.with_suffix(".json").write_text(json.dumps(notes, indent=1) + "\n")
    for case in cases:
        print(case)
    print(f"wrote {output} ({output.stat().st_size} bytes) and {output.with_suffix('.json')}")


if __name__ == "__main__":
    main()
