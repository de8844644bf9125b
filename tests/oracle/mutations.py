"""Changes one thing of a head on disk and sees whether a program notices.

Noticed means refused, or other logits. A change that neither stops a load nor moves a logit is a
setting or a tensor that a program leaves out.
"""

from __future__ import annotations

import contextlib
import json
import math
import pathlib
import shutil

import numpy as np

import head_logits_tool
import safetensors_stream as stream
import tensor_file
from closeness import largest_difference
from draft_chain import Sequence
from numpy_eagle3 import Head
from variant_oracles import DEPTHS, Case, along

# Five times what two right programs may differ by.
NOTICED = 1e-3

REFUSED = math.inf


def copy_head(case: Case, folder: pathlib.Path) -> pathlib.Path:
    return shutil.copytree(case.drafter, folder / "head")


def edit_config(head: pathlib.Path, change: dict) -> None:
    """Merges `change` into config.json, object by object."""

    def merge(into: dict, values: dict) -> None:
        for key, value in values.items():
            if isinstance(value, dict) and isinstance(into.get(key), dict):
                merge(into[key], value)
            else:
                into[key] = value

    path = head / "config.json"
    config = json.loads(path.read_text())
    merge(config, change)
    path.write_text(json.dumps(config))


@contextlib.contextmanager
def _edited_tensors(head: pathlib.Path):
    """Yields {name: array} and writes it back in the dtypes that were stored."""
    path = head / "model.safetensors"
    dtypes = tensor_file.stored_dtypes(path)
    arrays = tensor_file.read_tensors(path)
    yield arrays
    stream.write_folder(head, [stream.of_array(n, dtypes[n], a) for n, a in arrays.items()])


def remove_tensor(head: pathlib.Path, name: str) -> None:
    with _edited_tensors(head) as arrays:
        del arrays[name]


def perturb_tensor(head: pathlib.Path, name: str, drafted: int) -> None:
    """Other numbers of the same kind; in the map, only the entry of draft id `drafted`."""
    with _edited_tensors(head) as arrays:
        array = arrays[name]
        if name == "d2t":
            used = set((array + np.arange(len(array))).tolist())
            low = array[drafted - 1] + drafted if drafted else 0
            high = array[drafted + 1] + drafted + 2 if drafted + 1 < len(array) else low + 64
            free = [token for token in range(low, high) if token not in used]
            # A free id between the neighbours' keeps the map plausible; without one, a repeat.
            array[drafted] = (free[0] if free else low) - drafted
        elif array.dtype == bool:
            array[: len(array) // 2] ^= True
        elif array.size == 1:
            arrays[name] = array * np.float32(1.5)
        else:
            # Not one factor for all: a norm behind it would take that out again.
            waves = 1 + 0.5 * np.sin(np.arange(array.size, dtype=np.float32)).reshape(array.shape)
            arrays[name] = array * waves


# --- How far the logits move; infinity stands for a refusal ---


def reference_moves(case: Case, head: pathlib.Path) -> float:
    before = case.reference.draft(DEPTHS)
    try:
        sequence = Sequence(Head.load(head, case.target))
    except (ValueError, KeyError):
        return REFUSED
    sequence.extend(case.rows.aux, case.rows.tokens)
    after = sequence.draft(DEPTHS, forced=along(before.tokens[0]))
    if not np.array_equal(before.tokens[:, 0], after.tokens[:, 0]):
        return REFUSED  # the map alone changes no logits, but the first token
    return largest_difference(after.logits, before.logits)


def server_moves(case: Case, head: pathlib.Path, binaries: pathlib.Path, before) -> float:
    """`before`: logits and tokens of the unchanged head by the same program."""
    try:
        logits, tokens = head_logits_tool.run(
            binaries, head, case.target, case.rows.aux, case.rows.tokens, DEPTHS
        )
    except head_logits_tool.Refused:
        return REFUSED
    if logits.shape != before[0].shape or not np.array_equal(tokens, before[1]):
        return REFUSED  # other tokens are other logits further down
    return largest_difference(logits, before[0])
