"""The values of a recording and how recording.json spells them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

import numpy as np

from aerie_draft.dtypes import DType, bf16_to_float
from aerie_draft.wiring import Capture, CaptureKind

FORMAT = "aerie-recording/1"
DESCRIPTION = "recording.json"

TYPE_NAMES = {DType.FLOAT32: "F32", DType.FLOAT16: "F16", DType.BFLOAT16: "BF16"}
SAMPLE_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
TENSOR_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")
FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*\.safetensors")


def refusal(seen: str, expected: str, remedy: str) -> ValueError:
    return ValueError(f"{seen}; expected {expected}; {remedy}")


@dataclasses.dataclass(frozen=True)
class Target:
    """Whose states these are. 0 stands for "not known", which only an importer should need."""

    id: str
    hidden_size: int
    num_layers: int = 0
    vocab_size: int = 0


@dataclasses.dataclass(frozen=True)
class RecordedTensor:
    """One tensor of every sample, and what somebody says it holds.

    `claim` is a Capture, "embedding", or None where nobody says anything.
    """

    name: str
    label: str = ""
    claim: Capture | str | None = None


@dataclasses.dataclass(frozen=True)
class Sample:
    name: str
    tokens: np.ndarray  # [L] int32
    prompt_tokens: int | None  # of them; None: not known
    stored: Mapping[str, np.ndarray]  # tensor -> [L, hidden] as in the file: bf16 is uint16

    def rows(self, tensor: str) -> np.ndarray:
        """[L, hidden] float32."""
        stored = self.stored[tensor]
        if stored.dtype == np.uint16:
            return bf16_to_float(stored)
        return stored.astype(np.float32)


def claim_to_json(claim: Capture | str | None) -> dict | None:
    if claim is None:
        return None
    if claim == "embedding":
        return {"kind": "embedding"}
    if not isinstance(claim, Capture):
        raise refusal(f"a claim is {claim!r}", "a Capture, 'embedding' or None", "state it so")
    if claim.kind is CaptureKind.FINAL_NORM:
        return {"kind": "final_norm"}
    return {"kind": "boundary", "boundary": claim.boundary}


def claim_from_json(claim: dict | None) -> Capture | str | None:
    kind = None if claim is None else claim.get("kind")
    if kind == "boundary":
        return Capture(CaptureKind.BOUNDARY, int(claim["boundary"]))
    if kind == "final_norm":
        return Capture(CaptureKind.FINAL_NORM)
    return kind
