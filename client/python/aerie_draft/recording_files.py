"""safetensors files with NumPy alone: enough to write and read recordings.

NumPy has no bfloat16: such tensors are arrays of uint16 words here, and the type names of the
format, not NumPy's, tell them apart from whole numbers.
"""

from __future__ import annotations

import json
import math
import mmap
import pathlib
from collections.abc import Collection, Mapping

import numpy as np

# Name in the file -> how NumPy holds it. Little-endian on every machine.
STORAGE = {
    "BF16": np.dtype("<u2"),
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
_MAX_HEADER_BYTES = 100_000_000


def write_tensors(path: pathlib.Path, tensors: Mapping[str, tuple[str, np.ndarray]]) -> None:
    """Writes `name -> (type name, array)` in this order, through a file beside `path`.

    Whoever finds `path` finds a whole file.
    """
    header, at = {}, 0
    arrays = []
    for name, (kind, array) in tensors.items():
        array = np.ascontiguousarray(array, STORAGE[kind])
        header[name] = {
            "dtype": kind,
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        arrays.append(array)
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # The data starts on a multiple of 8 bytes.
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for array in arrays:
            file.write(array.data if array.size else b"")
    partial.replace(path)


def _fault(path: pathlib.Path, seen: str, expected: str) -> ValueError:
    return ValueError(
        f"{path}: {seen}; expected {expected}; the file is damaged or was not written as "
        "safetensors: write or fetch it again"
    )


def read_tensors(
    path: pathlib.Path, names: Collection[str] | None = None
) -> dict[str, tuple[str, np.ndarray]]:
    """`name -> (type name, array)` of a file, or of those of its tensors in `names`; the arrays are read-only views into its mapping.

    ValueError for a header that is malformed or leaves the file, and for an element type that is
    not in STORAGE.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size < 8:
            raise _fault(path, f"{size} bytes", "at least 8")
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    length = int.from_bytes(data[:8], "little")
    if length > min(size - 8, _MAX_HEADER_BYTES):
        raise _fault(path, f"a header of {length} bytes", f"at most {size - 8}")
    try:
        header = json.loads(bytes(data[8 : 8 + length]))
    except ValueError:
        raise _fault(path, "a header that is no JSON", "a JSON object") from None
    if not isinstance(header, dict):
        raise _fault(path, "a header that is no object", "a JSON object")
    body = data[8 + length :]
    return {
        name: _tensor(path, name, entry, body)
        for name, entry in header.items()
        if name != "__metadata__" and (names is None or name in names)
    }


def _tensor(path, name, entry, body) -> tuple[str, np.ndarray]:
    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
        raise _fault(path, f"tensor {name!r} without type, shape or place", "all three")
    kind, shape, place = entry["dtype"], entry["shape"], entry["data_offsets"]
    if kind not in STORAGE:
        raise ValueError(
            f"{path}: tensor {name!r} is {kind}; expected one of {', '.join(STORAGE)}; convert it "
            "to bfloat16, float16 or float32 first"
        )
    whole = all(
        isinstance(values, list) and all(type(n) is int and n >= 0 for n in values)
        for values in (shape, place)
    )
    if not whole or len(place) != 2 or not place[0] <= place[1] <= len(body):
        raise _fault(path, f"tensor {name!r} at {place} with shape {shape}", "a place in the file")
    if place[1] - place[0] != math.prod(shape) * STORAGE[kind].itemsize:
        raise _fault(path, f"tensor {name!r} of {place[1] - place[0]} bytes", f"those of {shape}")
    return kind, np.frombuffer(body[place[0] : place[1]], STORAGE[kind]).reshape(shape)
