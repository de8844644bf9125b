"""Reads and writes safetensors files for the oracles, with NumPy alone.

The trap: NumPy has no bfloat16, and the safetensors package then refuses such a tensor. It is read
here as raw 16-bit words and widened to float32. That is exact: bf16 is a float32's upper half. The
same goes for the two 8-bit floats.
"""

from __future__ import annotations

import json
import pathlib
import struct

import numpy as np
from safetensors import safe_open

_WRITTEN_AS = {
    np.dtype(np.float32): "F32",
    np.dtype(np.int32): "I32",
}
_FP8 = {"F8_E4M3", "F8_E5M2"}


def widen_bf16(words: np.ndarray) -> np.ndarray:
    """uint16 words of bf16 -> the float32 values they stand for (exact)."""
    return (words.astype(np.uint32) << np.uint32(16)).view(np.float32)


def widen_fp8(codes: np.ndarray, dtype: str) -> np.ndarray:
    """uint8 codes -> the float32 values they stand for (exact); codes of no number are refused.

    Sign, then 4 or 5 bits of exponent, then mantissa. E4M3 here has no infinities, so it reaches
    448; E5M2 is the upper half of a float16.
    """
    if dtype == "F8_E5M2":
        values = (codes.astype(np.uint16) << np.uint16(8)).view(np.float16).astype(np.float32)
    else:
        mantissa, exponent = codes & 7, (codes >> 3) & 15
        normal = (1 + mantissa / 8) * np.exp2(exponent.astype(np.float64) - 7)
        size = np.where(exponent == 0, mantissa / 8 * 2.0**-6, normal)
        size = np.where((codes & 0x7F) == 0x7F, np.nan, size)
        values = np.where(codes & 0x80, -size, size).astype(np.float32)
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{dtype} codes that stand for no finite number; expected weights")
    return values


def narrow_to_bf16(values: np.ndarray) -> np.ndarray:
    """float32 values -> uint16 words. Only for values that came from bf16: others are refused."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    if np.any(bits & np.uint32(0xFFFF)):
        raise ValueError(
            "narrow_to_bf16: some values need more than 8 bits of mantissa; expected rows that "
            "were read from bf16; round them first if rounding is what you want"
        )
    return (bits >> np.uint32(16)).astype(np.uint16)


def _header(path: pathlib.Path) -> tuple[dict, int]:
    """The JSON header and the file offset at which the tensors' bytes start."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(length)), 8 + length


def tensor_names(path: pathlib.Path) -> list[str]:
    with safe_open(path, framework="np") as file:
        return list(file.keys())


def stored_dtypes(path: pathlib.Path) -> dict[str, str]:
    """By name: "BF16", "I64", ..."""
    header, _ = _header(path)
    return {name: entry["dtype"] for name, entry in header.items() if name != "__metadata__"}


def read_tensor(path: pathlib.Path, name: str) -> np.ndarray:
    """One tensor; bf16 and fp8 come back as float32, every other dtype as it is."""
    with safe_open(path, framework="np") as file:
        dtype = file.get_slice(name).get_dtype()
        if dtype != "BF16" and dtype not in _FP8:
            return file.get_tensor(name)
    header, data_start = _header(path)
    begin, end = header[name]["data_offsets"]
    if dtype in _FP8:
        codes = np.fromfile(path, np.uint8, count=end - begin, offset=data_start + begin)
        return widen_fp8(codes, dtype).reshape(header[name]["shape"])
    words = np.fromfile(path, "<u2", count=(end - begin) // 2, offset=data_start + begin)
    return widen_bf16(words).reshape(header[name]["shape"])


def read_tensors(path: pathlib.Path) -> dict[str, np.ndarray]:
    return {name: read_tensor(path, name) for name in tensor_names(path)}


def write_tensors(
    path: pathlib.Path,
    tensors: dict[str, np.ndarray],
    metadata: dict[str, str] | None = None,
    as_bf16: frozenset[str] = frozenset(),
) -> None:
    """Writes float32 and int32 arrays; the float32 arrays named in `as_bf16` are stored as bf16."""
    header: dict = {"__metadata__": metadata} if metadata else {}
    chunks, offset = [], 0
    for name, array in sorted(tensors.items()):
        if name in as_bf16:
            dtype, data = "BF16", narrow_to_bf16(array).astype("<u2").tobytes()
        else:
            dtype, data = _WRITTEN_AS[array.dtype], np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": dtype,
            "shape": list(array.shape),
            "data_offsets": [offset, offset + len(data)],
        }
        chunks.append(data)
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors start on 8 bytes, so a reader may map them in place
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.writelines(chunks)
