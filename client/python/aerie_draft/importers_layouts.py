"""How trainers lay out a dumped sample, and what it becomes here: tokens and one array a place.

Which place a tensor was taken at is not in such files. What the format says of it becomes the
tensor's label, what the user says too; neither is checked here.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

import numpy as np

from aerie_draft.importers_torch import RefusedFile, TorchTensor
from aerie_draft.wiring import (
    FINAL_NORM,
    Capture,
    LayerIdConvention,
    boundaries_from_layer_ids,
    captures_at,
)

TOKEN_KEYS = ("input_ids", "token_ids", "tokens")
_AUX_KEYS = ("aux_hidden_state", "aux_hidden_states")
_LAST_KEYS = ("hidden_state", "hidden_states")

_FLOATING = ("BF16", "F16", "F32", "F64")


@dataclasses.dataclass
class DumpedSample:
    """One sample: `rows[name]` is [L, hidden] in the element type `kind`."""

    tokens: np.ndarray
    kind: str
    rows: dict[str, np.ndarray]
    labels: dict[str, str]  # what the format says of a tensor; may lack some
    prompt_tokens: int | None = None  # as the loss mask tells; None: it does not


def _refuse(subject: str, seen: str, expected: str, remedy: str) -> RefusedFile:
    return RefusedFile(f"{subject}: {seen}; expected {expected}; {remedy}")


def whole_numbers(subject: str, value) -> np.ndarray:
    """[L] int64 of a tensor of whole numbers, with or without a batch of 1, or of a list."""
    if isinstance(value, TorchTensor):
        array = value.array
        if value.kind not in ("I64", "I32", "I16"):
            raise _refuse(subject, f"tokens of type {value.kind}", "whole numbers", "convert them")
    else:
        array = np.asarray(value)
    if array.ndim == 2 and array.shape[0] == 1:
        array = array[0]
    if array.ndim != 1 or not array.size or not np.issubdtype(array.dtype, np.integer):
        raise _refuse(
            subject,
            f"tokens of shape {list(array.shape)}",
            "one list of whole numbers",
            "save one sample a file",
        )
    return array.astype(np.int64)


def prompt_of_mask(subject: str, mask, length: int) -> int | None:
    """How many tokens stand before the first that the loss counts; None when it counts none."""
    array = np.asarray(mask.array if isinstance(mask, TorchTensor) else mask).reshape(-1)
    if len(array) != length:
        raise _refuse(
            subject, f"a loss mask of {len(array)} entries", f"{length}, one a token", "cut it"
        )
    counted = np.flatnonzero(array)
    return int(counted[0]) if len(counted) else None


def tensor_of(subject: str, name: str, value) -> TorchTensor:
    if not isinstance(value, TorchTensor) or value.kind not in _FLOATING:
        what = value.kind if isinstance(value, TorchTensor) else type(value).__name__
        raise _refuse(
            subject,
            f"{name} is {what}",
            "a tensor of bfloat16, float16 or float32",
            "convert it, and dequantise quantised states",
        )
    return value


def split_rows(
    subject: str, name: str, array: np.ndarray, length: int, hidden: int | None
) -> list[np.ndarray]:
    """The [L, H] arrays in [L, H], [L, K*H], [L, K, H] or [K, L, H], also in a batch of 1."""
    shape = list(array.shape)
    if array.ndim >= 3 and shape[0] == 1 and length != 1:
        array = array[0]
    if array.ndim == 3:
        by_row, by_tensor = array.shape[0] == length, array.shape[1] == length
        if by_row == by_tensor:
            raise _refuse(
                subject,
                f"{name} has shape {shape} for {length} tokens",
                "[tokens, tensors, hidden] or [tensors, tokens, hidden], told apart by the tokens",
                "save the tensors one by one",
            )
        array = array if by_tensor else array.transpose(1, 0, 2)
        return list(array)
    if array.ndim != 2 or array.shape[0] != length:
        raise _refuse(
            subject,
            f"{name} has shape {shape} for {length} tokens",
            "one row a token",
            "cut tokens or rows to the same positions: a row missing at either end shifts all",
        )
    width = array.shape[1]
    if hidden is None:
        raise _refuse(
            subject,
            f"{name} has rows of {width} numbers",
            "to know how many belong to one place",
            "give --hidden-size or --target",
        )
    if width % hidden:
        raise _refuse(
            subject,
            f"{name} has rows of {width} numbers",
            f"a multiple of {hidden}",
            "correct --hidden-size or --target",
        )
    return [array[:, at : at + hidden] for at in range(0, width, hidden)]


def sample_of_parts(
    subject: str, tokens, parts: Mapping[str, TorchTensor], labels: Mapping[str, str] | None = None
) -> DumpedSample:
    kinds = {t.kind for t in parts.values()}
    if len(kinds) != 1:
        raise _refuse(
            subject, f"tensors of types {', '.join(sorted(kinds))}", "one type", "convert them"
        )
    return DumpedSample(
        tokens, kinds.pop(), {n: t.array for n, t in parts.items()}, dict(labels or {})
    )


def sample_of_dict(subject: str, content, hidden: int | None) -> DumpedSample:
    """From one dict a sample, as SpecForge, ModelOpt, speculators and home-made dumps have it."""
    if not isinstance(content, Mapping):
        raise _refuse(
            subject,
            f"it holds a {type(content).__name__}",
            "a dict with tokens and hidden states",
            "save such a dict",
        )
    keys = ", ".join(sorted(map(str, content))) or "none"
    token_key = next((k for k in TOKEN_KEYS if k in content), None)
    aux_key = next((k for k in _AUX_KEYS if k in content), None)
    last_key = next((k for k in _LAST_KEYS if k in content), None)
    if token_key is None or (aux_key is None and last_key is None):
        raise _refuse(
            subject,
            f"a dict with the keys {keys}",
            f"one of {', '.join(TOKEN_KEYS)} and one of {', '.join(_AUX_KEYS + _LAST_KEYS)}",
            "rename the keys",
        )
    tokens = whole_numbers(subject, content[token_key])
    parts: dict[str, TorchTensor] = {}
    labels: dict[str, str] = {}
    if aux_key is not None and last_key is not None:
        last = tensor_of(subject, last_key, content[last_key])
        hidden = hidden or last.array.shape[-1]
    if aux_key is not None:
        _add(parts, subject, aux_key, content[aux_key], len(tokens), hidden)
        if last_key is not None:
            (array,) = split_rows(subject, last_key, last.array, len(tokens), hidden)
            parts["final"] = TorchTensor(last.kind, array)
            labels["final"] = f"{last_key} beside {aux_key}"
    else:
        value = content[last_key]
        if isinstance(value, TorchTensor) and value.array.ndim == 3 and value.array.shape[0] != 1:
            hidden = None  # the shape says it
        _add(parts, subject, last_key, value, len(tokens), hidden)
    sample = sample_of_parts(subject, tokens, parts, labels)
    if "loss_mask" in content:
        sample.prompt_tokens = prompt_of_mask(subject, content["loss_mask"], len(tokens))
    return sample


def _add(parts, subject, key, value, length, hidden) -> None:
    """Adds aux_0, aux_1, ... of one tensor that holds them all, or of a list of them."""
    listed = isinstance(value, (list, tuple))
    for item in value if listed else [value]:
        tensor = tensor_of(subject, key, item)
        width = tensor.array.shape[-1] if listed else hidden
        for array in split_rows(subject, key, tensor.array, length, width):
            parts[f"aux_{len(parts)}"] = TorchTensor(tensor.kind, array)


_LAYER = re.compile(r"layer[ _-]?(\d+)")
_BOUNDARY = re.compile(r"boundary[ _-]?(\d+)")


def claim_of_label(
    label: str, convention: LayerIdConvention | None, num_layers: int
) -> Capture | str | None:
    """What a label claims, as far as it can be read.

    "layer 3" names the input or the output of a layer, and only the user can know which: without
    `convention` it claims nothing.
    """
    text = label.strip().lower()
    if text in ("embed", "embedding", "embeddings"):
        return "embedding"
    if re.fullmatch(r"final[ _-]?norm", text):
        return FINAL_NORM
    if match := _BOUNDARY.fullmatch(text):
        return captures_at([int(match[1])])[0]
    if (match := _LAYER.fullmatch(text)) and convention is not None:
        ids = [int(match[1])]
        (boundary,) = boundaries_from_layer_ids(ids, convention, num_layers or 1 << 16)
        return captures_at([boundary])[0]
    return None


def order_of(names: Sequence[str]) -> list[str]:
    """aux_0, aux_1, ..., aux_10, then the rest by name."""

    def key(name: str):
        match = re.fullmatch(r"(.*?)(\d+)", name)
        return (0, match[1], int(match[2])) if match else (1, name, 0)

    return sorted(names, key=key)
