"""Recordings: hidden states of a target with their tokens, in a folder that aerie-verify reads.

Row p of a tensor is the state of position p: row p and token p belong together, and the token that
*follows* the state is token p + 1. A label or a claim says what somebody believes a tensor to hold;
nothing here checks it, and aerie-verify is made to.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from aerie_draft.dtypes import DType, bf16_to_float, encode_rows
from aerie_draft.recording_files import read_tensors, write_tensors
from aerie_draft.wiring import Capture, CaptureKind

FORMAT = "aerie-recording/1"
DESCRIPTION = "recording.json"

_TYPE_NAMES = {DType.FLOAT32: "F32", DType.FLOAT16: "F16", DType.BFLOAT16: "BF16"}
_DTYPES = {dtype.name.lower(): dtype for dtype in DType}
_SAMPLE_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")
_TENSOR_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")
_FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*\.safetensors")


def _refuse(seen: str, expected: str, remedy: str) -> ValueError:
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


def _claim_to_json(claim: Capture | str | None) -> dict | None:
    if claim is None:
        return None
    if claim == "embedding":
        return {"kind": "embedding"}
    if not isinstance(claim, Capture):
        raise _refuse(f"a claim is {claim!r}", "a Capture, 'embedding' or None", "state it so")
    if claim.kind is CaptureKind.FINAL_NORM:
        return {"kind": "final_norm"}
    return {"kind": "boundary", "boundary": claim.boundary}


def _claim_from_json(claim: dict | None) -> Capture | str | None:
    kind = None if claim is None else claim.get("kind")
    if kind == "boundary":
        return Capture(CaptureKind.BOUNDARY, int(claim["boundary"]))
    if kind == "final_norm":
        return Capture(CaptureKind.FINAL_NORM)
    return kind


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
            if not _TENSOR_NAME.fullmatch(name) or name == "tokens" or names.count(name) > 1:
                raise _refuse(
                    f"a tensor is called {name!r}",
                    "distinct names of letters, digits, _, - and dots, none of them 'tokens'",
                    "rename it",
                )
        if not names:
            raise _refuse("a recording without tensors", "at least one", "name what is recorded")
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
        if not _SAMPLE_NAME.fullmatch(name) or any(s["name"] == name for s in self._samples):
            raise _refuse(
                f"a sample is called {name!r}", "distinct names of letters, digits, _ and -",
                "rename it",
            )
        ids = np.asarray(tokens)
        most = (self._target.vocab_size or 2**31) - 1
        if ids.ndim != 1 or not ids.size or ids.min() < 0 or ids.max() > most:
            raise _refuse(
                f"sample {name} has tokens of shape {list(ids.shape)}"
                + (f" in {ids.min()} .. {ids.max()}" if ids.size else ""),
                f"one or more in 0 .. {most}", "check tokenizer and target",
            )
        if prompt_tokens is not None and not 0 <= prompt_tokens <= len(ids):
            raise _refuse(
                f"sample {name} has {prompt_tokens} prompt tokens",
                f"0 .. {len(ids)}, its length", "correct it",
            )
        if rows.keys() != {t.name for t in self._tensors}:
            raise _refuse(
                f"sample {name} brings the tensors {sorted(rows)}",
                f"exactly {sorted(t.name for t in self._tensors)}", "bring each of them once",
            )
        entries = {f"{name}.tokens": ("I32", ids.astype(np.int32))}
        for tensor in self._tensors:
            encoded = self._encode(name, tensor.name, rows[tensor.name], len(ids))
            entries[f"{name}.{tensor.name}"] = (_TYPE_NAMES[self._dtype], encoded)
        sample = {"name": name, "tokens": len(ids), "file": self._shard_name()}
        if prompt_tokens is not None:
            sample["prompt_tokens"] = int(prompt_tokens)
        self._samples.append(sample)
        self._shard.update(entries)
        if sum(array.nbytes for _, array in self._shard.values()) >= self._shard_bytes:
            self._flush()

    def close(self) -> None:
        """Writes what is left and the description. FAILS without a sample."""
        if not self._samples:
            raise _refuse("a recording without samples", "at least one", "record something")
        if self._shard:
            self._flush()
        document = {
            "format": FORMAT,
            "target": dataclasses.asdict(self._target),
            "dtype": self._dtype.name.lower(),
            "source": self._source,
            "tensors": [
                {"name": t.name, "label": t.label, "claim": _claim_to_json(t.claim)}
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
            raise _refuse(
                f"{tensor} of sample {sample} has shape {list(encoded.shape)}",
                f"{[length, self._target.hidden_size]}: one row a token", "cut or reshape it",
            )
        values = bf16_to_float(encoded) if encoded.dtype == np.uint16 else encoded
        bad = ~np.isfinite(values).all(axis=1)
        if bad.any():
            raise _refuse(
                f"row {int(np.argmax(bad))} of {tensor} in sample {sample} is not finite as "
                f"{self._dtype.name.lower()}", "finite numbers",
                "leave the sample out, or record in bfloat16 or float32 where float16 overflows",
            )
        return encoded


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
            RecordedTensor(t["name"], t.get("label", ""), _claim_from_json(t.get("claim")))
            for t in document["tensors"]
        )
        described = [
            (s["name"], int(s["tokens"]), s.get("prompt_tokens"), s["file"])
            for s in document["samples"]
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as fault:
        raise _refuse(
            f"{path} cannot be used ({type(fault).__name__}: {fault})",
            f"the description of a recording, format {FORMAT}", "write the recording again",
        ) from None
    opened: dict[str, dict[str, tuple[str, np.ndarray]]] = {}
    samples = []
    for name, length, prompt_tokens, file in described:
        if not _FILE_NAME.fullmatch(file):  # A plain name cannot lead out of the folder.
            raise _refuse(
                f"{path} names the file {file!r}", "a plain name ending with .safetensors",
                "write the recording again",
            )
        if file not in opened:
            opened[file] = read_tensors(folder / file)

        def find(key, kind, shape, held=opened[file], file=file):
            found, array = held.get(key, ("nothing", np.empty(0)))
            if (found, array.shape) != (kind, shape):
                raise _refuse(
                    f"{folder / file} holds {key} as {found} {list(array.shape)}",
                    f"{kind} {list(shape)}", "write the recording again",
                )
            return array

        tokens = find(f"{name}.tokens", "I32", (length,))
        shape = (length, target.hidden_size)
        stored = {t.name: find(f"{name}.{t.name}", _TYPE_NAMES[dtype], shape) for t in tensors}
        samples.append(Sample(name, tokens, prompt_tokens, stored))
    return Recording(folder, target, tensors, dtype, document.get("source", ""), tuple(samples))
