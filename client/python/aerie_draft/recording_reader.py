"""Reads recordings."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator

import numpy as np

from aerie_draft.dtypes import DType, PLAIN_DTYPES
from aerie_draft.recording_files import read_tensors
from aerie_draft.recording_values import (
    DESCRIPTION,
    FILE_NAME,
    FORMAT,
    TYPE_NAMES,
    RecordedTensor,
    Sample,
    Target,
    claim_from_json,
    refusal,
)

_DTYPES = {dtype.name.lower(): dtype for dtype in PLAIN_DTYPES}


class Recording:
    """A recording that was read. Rows are views into mapped files."""

    def __init__(self, folder, target, tensors, dtype, source, samples):
        self.folder: pathlib.Path = folder
        self.target: Target = target
        self.tensors: tuple[RecordedTensor, ...] = tensors
        self.dtype: DType = dtype
        self.source: str = source
        self.samples: tuple[Sample, ...] = samples

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.samples)


def read_recording(folder: pathlib.Path | str) -> Recording:
    """ValueError, with what is wrong, unless description and files agree."""
    folder = pathlib.Path(folder)
    path = folder / DESCRIPTION
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is not there; expected a recording's folder; record or import one"
        )
    try:
        document = json.loads(path.read_text())
        if document.get("format") != FORMAT:
            raise KeyError(f"format {document.get('format')!r}")
        target = Target(**document["target"])
        dtype = _DTYPES[document["dtype"]]
        tensors = tuple(
            RecordedTensor(t["name"], t.get("label", ""), claim_from_json(t.get("claim")))
            for t in document["tensors"]
        )
        described = [
            (s["name"], int(s["tokens"]), s.get("prompt_tokens"), s["file"])
            for s in document["samples"]
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as fault:
        raise refusal(
            f"{path} cannot be used ({type(fault).__name__}: {fault})",
            f"the description of a recording, format {FORMAT}",
            "write the recording again",
        ) from None
    opened: dict[str, dict[str, tuple[str, np.ndarray]]] = {}
    samples = []
    for name, length, prompt_tokens, file in described:
        if not FILE_NAME.fullmatch(file):  # A plain name cannot lead out of the folder.
            raise refusal(
                f"{path} names the file {file!r}",
                "a plain name ending with .safetensors",
                "write the recording again",
            )
        if file not in opened:
            opened[file] = read_tensors(folder / file)

        def find(key, kind, shape, held=opened[file], file=file):
            found, array = held.get(key, ("nothing", np.empty(0)))
            if (found, array.shape) != (kind, shape):
                raise refusal(
                    f"{folder / file} holds {key} as {found} {list(array.shape)}",
                    f"{kind} {list(shape)}",
                    "write the recording again",
                )
            return array

        tokens = find(f"{name}.tokens", "I32", (length,))
        shape = (length, target.hidden_size)
        stored = {t.name: find(f"{name}.{t.name}", TYPE_NAMES[dtype], shape) for t in tensors}
        samples.append(Sample(name, tokens, prompt_tokens, stored))
    return Recording(folder, target, tensors, dtype, document.get("source", ""), tuple(samples))
