"""Writes recordings."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Mapping, Sequence

import numpy as np

from aerie_draft.dtypes import DType, bf16_to_float, encode_rows
from aerie_draft.recording_files import write_tensors
from aerie_draft.recording_values import (
    DESCRIPTION,
    FORMAT,
    SAMPLE_NAME,
    TENSOR_NAME,
    TYPE_NAMES,
    RecordedTensor,
    Target,
    claim_to_json,
    refusal,
)


class RecordingWriter:
    """Writes a recording sample by sample. One thread at a time.

    Use it as a context manager: recording.json comes last and only when no exception passes, so an
    interrupted recording is none. A file is written once `shard_bytes` of rows have come together;
    no more than that, and one sample, is held in memory.
    """

    def __init__(
        self,
        folder: pathlib.Path | str,
        target: Target,
        tensors: Sequence[RecordedTensor],
        dtype: DType,
        source: str = "",
        shard_bytes: int = 256 << 20,
    ):
        self._folder = pathlib.Path(folder)
        self._target = target
        self._tensors = list(tensors)
        self._dtype = dtype
        self._source = source
        self._shard_bytes = shard_bytes
        self._samples: list[dict] = []
        self._shard: dict[str, tuple[str, np.ndarray]] = {}
        self._shard_number = 1
        names = [t.name for t in self._tensors]
        for name in names:
            if not TENSOR_NAME.fullmatch(name) or name == "tokens" or names.count(name) > 1:
                raise refusal(
                    f"a tensor is called {name!r}",
                    "distinct names of letters, digits, _, - and dots, none of them 'tokens'",
                    "rename it",
                )
        if not names:
            raise refusal("a recording without tensors", "at least one", "name what is recorded")
        if (self._folder / DESCRIPTION).exists():
            raise FileExistsError(
                f"{self._folder} holds a recording already; expected an empty folder; choose "
                "another one or delete it"
            )
        self._folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> RecordingWriter:
        return self

    def __exit__(self, kind, value, traceback) -> None:
        if kind is None:
            self.close()

    def add(
        self,
        tokens: Sequence[int] | np.ndarray,
        rows: Mapping[str, np.ndarray],
        prompt_tokens: int | None = None,
        name: str | None = None,
    ) -> None:
        """Adds one sample: `rows[tensor]` is [len(tokens), hidden], floating or bf16 words."""
        name = str(len(self._samples)) if name is None else name
        if not SAMPLE_NAME.fullmatch(name) or any(s["name"] == name for s in self._samples):
            raise refusal(
                f"a sample is called {name!r}",
                "distinct names of letters, digits, _ and -",
                "rename it",
            )
        ids = np.asarray(tokens)
        most = (self._target.vocab_size or 2**31) - 1
        if ids.ndim != 1 or not ids.size or ids.min() < 0 or ids.max() > most:
            raise refusal(
                f"sample {name} has tokens of shape {list(ids.shape)}"
                + (f" in {ids.min()} .. {ids.max()}" if ids.size else ""),
                f"one or more in 0 .. {most}",
                "check tokenizer and target",
            )
        if prompt_tokens is not None and not 0 <= prompt_tokens <= len(ids):
            raise refusal(
                f"sample {name} has {prompt_tokens} prompt tokens",
                f"0 .. {len(ids)}, its length",
                "correct it",
            )
        if rows.keys() != {t.name for t in self._tensors}:
            raise refusal(
                f"sample {name} brings the tensors {sorted(rows)}",
                f"exactly {sorted(t.name for t in self._tensors)}",
                "bring each of them once",
            )
        entries = {f"{name}.tokens": ("I32", ids.astype(np.int32))}
        for tensor in self._tensors:
            encoded = self._encode(name, tensor.name, rows[tensor.name], len(ids))
            entries[f"{name}.{tensor.name}"] = (TYPE_NAMES[self._dtype], encoded)
        sample = {"name": name, "tokens": len(ids), "file": self._shard_name()}
        if prompt_tokens is not None:
            sample["prompt_tokens"] = int(prompt_tokens)
        self._samples.append(sample)
        self._shard.update(entries)
        if sum(array.nbytes for _, array in self._shard.values()) >= self._shard_bytes:
            self._flush()

    def close(self) -> None:
        """Writes what is left and the description. ValueError without a sample."""
        if not self._samples:
            raise refusal("a recording without samples", "at least one", "record something")
        if self._shard:
            self._flush()
        document = {
            "format": FORMAT,
            "target": dataclasses.asdict(self._target),
            "dtype": self._dtype.name.lower(),
            "source": self._source,
            "tensors": [
                {"name": t.name, "label": t.label, "claim": claim_to_json(t.claim)}
                for t in self._tensors
            ],
            "samples": self._samples,
        }
        path = self._folder / DESCRIPTION
        partial = path.with_name(path.name + ".partial")
        partial.write_text(json.dumps(document, indent=1) + "\n")
        partial.replace(path)

    def _shard_name(self) -> str:
        return f"samples-{self._shard_number:05d}.safetensors"

    def _flush(self) -> None:
        write_tensors(self._folder / self._shard_name(), self._shard)
        self._shard = {}
        self._shard_number += 1

    def _encode(self, sample: str, tensor: str, rows: np.ndarray, length: int) -> np.ndarray:
        encoded = encode_rows(rows, self._dtype)
        if encoded.shape != (length, self._target.hidden_size):
            raise refusal(
                f"{tensor} of sample {sample} has shape {list(encoded.shape)}",
                f"{[length, self._target.hidden_size]}: one row a token",
                "cut or reshape it",
            )
        values = bf16_to_float(encoded) if encoded.dtype == np.uint16 else encoded
        bad = ~np.isfinite(values).all(axis=1)
        if bad.any():
            raise refusal(
                f"row {int(np.argmax(bad))} of {tensor} in sample {sample} is not finite as "
                f"{self._dtype.name.lower()}",
                "finite numbers",
                "leave the sample out, or record in bfloat16 or float32 where float16 overflows",
            )
        return encoded
