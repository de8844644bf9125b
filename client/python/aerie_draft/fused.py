"""The drafter's fc at the worker: rows a third as wide for three captures.

The drafter's first step is one product, fc, over the concatenated captures of a row. A worker that
holds the drafter's checkpoint can do it itself and send what comes out. The server compares digests
when the session opens, so another fc is refused and never drafted with. What is lost: the live
guard cannot tell captures behind fc, and says "unknown" of such a worker whatever it captures.
"""

from __future__ import annotations

import hashlib
import json
import pathlib

import numpy as np

from aerie_draft.dtypes import bf16_to_float
from aerie_draft.recording_files import read_tensors
from aerie_draft.values import FusedFeatures

_NAME = "fc.weight"


class FusedFc:
    """The fc of one checkpoint."""

    def __init__(self, kind: str, stored: np.ndarray):
        """`kind` is the safetensors name of the type; BF16 is stored as uint16 words. [out, in]"""
        if kind not in ("F32", "F16", "BF16") or stored.ndim != 2:
            raise ValueError(
                f"{_NAME} is {kind} {list(stored.shape)}; expected a matrix in F32, F16 or BF16; "
                "send captures: the server takes no fused rows of such a head"
            )
        digest = hashlib.sha256(f"{kind} {stored.shape[0]} {stored.shape[1]}\n".encode())
        digest.update(np.ascontiguousarray(stored).data)
        self.features = FusedFeatures(width=stored.shape[0], fc_digest=digest.hexdigest())
        weights = bf16_to_float(stored) if kind == "BF16" else stored.astype(np.float32)
        self._inputs = np.ascontiguousarray(weights.T)

    @classmethod
    def load(cls, folder: pathlib.Path | str) -> FusedFc:
        """Of a checkpoint folder: model.safetensors, or shards with their index."""
        folder = pathlib.Path(folder)
        index = folder / "model.safetensors.index.json"
        path = folder / "model.safetensors"
        if index.is_file():
            path = folder / json.loads(index.read_text())["weight_map"].get(_NAME, path.name)
        if not path.is_file():
            raise FileNotFoundError(
                f"{path} is not there; expected the drafter's checkpoint; give its folder"
            )
        tensors = read_tensors(path, {_NAME})
        if _NAME not in tensors:
            raise ValueError(
                f"{path} holds no {_NAME}; expected that of an EAGLE-3 head; send captures: the "
                "server takes no fused rows of such a head"
            )
        return cls(*tensors[_NAME])

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """[r, captures x hidden_size] floating-point rows -> float32 [r, features.width]."""
        if rows.ndim != 2 or rows.shape[1] != self._inputs.shape[0]:
            raise ValueError(
                f"rows have shape {list(rows.shape)}; expected [rows, {self._inputs.shape[0]}], the "
                "captures of the drafter's wiring side by side; correct the capture"
            )
        return np.asarray(rows, np.float32) @ self._inputs
