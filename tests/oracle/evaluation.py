"""The evaluation recording, the folders of the models, and how acceptance on it is counted.

The recording holds tokens x_0 .. x_{n-1} and the aux hidden state of every position. Row i of a
drafter pairs the state of position i with x_{i+1}, so n tokens give n - 1 rows; "slot s" means rows
0 .. s, after which draft depth 1 speaks of x_{s+2}.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib

import numpy as np

import tensor_file

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = REPOSITORY / "tests" / "golden"
RECORDING = GOLDEN / "eval" / "recording.safetensors"
GOLDEN_LOGITS = GOLDEN / "demo_logits.safetensors"
GOLDEN_NOTES = GOLDEN / "demo_logits.json"

GOLDEN_DEPTHS = 5

# (sequence, slot) of the golden logits. Sequences 0, 3 and 5 are greedy, 8 and 10 at temperature
# 0.7. Slots: a lone first row, the row after which the answer starts, some in between, the last.
GOLDEN_SLOTS = [(0, 45), (0, 172), (3, 90), (5, 0), (8, 41), (8, 120), (10, 77)]


def target_folder() -> pathlib.Path:
    return _model_folder("AERIE_TARGET", REPOSITORY / "build" / "target")


def drafter_folder() -> pathlib.Path:
    return _model_folder("AERIE_DRAFTER", REPOSITORY / "demo" / "drafter")


def _model_folder(variable: str, default: pathlib.Path) -> pathlib.Path:
    folder = pathlib.Path(os.environ.get(variable, default))
    if not (folder / "model.safetensors").is_file():
        raise FileNotFoundError(
            f"{folder} has no model.safetensors; expected a model folder there ({variable} or the "
            f"default {default}); run tests/run, which makes it, or set {variable}"
        )
    return folder


@dataclasses.dataclass(frozen=True)
class RecordedSequence:
    index: int
    prompt_tokens: int
    tokens: np.ndarray  # [n] int32
    aux: np.ndarray  # [n, K*Ht] float32, values exact in bf16

    def rows(self, slot: int) -> tuple[np.ndarray, np.ndarray]:
        """The drafter's rows 0 .. slot: aux [slot+1, K*Ht] and the token after each, [slot+1]."""
        return self.aux[: slot + 1], self.tokens[1 : slot + 2]

    @property
    def answer_slots(self) -> np.ndarray:
        """The slots of the recorded answer that have a recorded token left to predict."""
        return np.arange(self.prompt_tokens - 1, len(self.tokens) - 2)


def expected() -> dict:
    return json.loads((RECORDING.parent / "recording.json").read_text())["expected"]


def sequences() -> list[RecordedSequence]:
    notes = json.loads((RECORDING.parent / "recording.json").read_text())["sequences"]
    return [
        RecordedSequence(
            index=note["index"],
            prompt_tokens=note["prompt_tokens"],
            tokens=tensor_file.read_tensor(RECORDING, f"{note['index']}.tokens"),
            aux=tensor_file.read_tensor(RECORDING, f"{note['index']}.aux"),
        )
        for note in notes
    ]


def accepted(sequence: RecordedSequence, slot: int, draft: np.ndarray) -> int:
    """How many tokens of `draft` the recording continues with; drafts past its end are not kept."""
    truth = sequence.tokens[slot + 2 : slot + 2 + len(draft)]
    equal = draft[: len(truth)] == truth
    return len(truth) if equal.all() else int(np.argmin(equal))


def count_rounds(
    recorded: list[RecordedSequence], drafts: list[np.ndarray], k: int
) -> tuple[int, float]:
    """(rounds, accept length) of drafting k tokens a round through every answer.

    `drafts[i]` is [slots, >= k]: the chain behind each of `recorded[i].answer_slots`. A round
    commits what it kept and one recorded token more; accept length counts that one too.
    """
    rounds, kept = 0, 0
    for sequence, draft in zip(recorded, drafts, strict=True):
        first, last = sequence.answer_slots[0], sequence.answer_slots[-1]
        slot = first
        while slot <= last:
            gained = accepted(sequence, slot, draft[slot - first, :k])
            rounds, kept, slot = rounds + 1, kept + gained, slot + gained + 1
    return rounds, 1 + kept / rounds


def acceptance_by_position(
    recorded: list[RecordedSequence], drafts: list[np.ndarray]
) -> list[float]:
    """Of all slots of all answers, the share whose draft is kept up to position 1, 2, ..."""
    kept = np.array(
        [
            accepted(sequence, slot, tokens)
            for sequence, draft in zip(recorded, drafts, strict=True)
            for slot, tokens in zip(sequence.answer_slots, draft, strict=True)
        ]
    )
    return [float(np.mean(kept > position)) for position in range(drafts[0].shape[1])]
