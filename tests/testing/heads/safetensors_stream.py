"""Writes safetensors files of random numbers of any size, block by block, in little memory.

What a reader would get wrong: a tensor's values depend on (seed, its key) alone, not on the file,
the order, the name or the sharding. So one head spelled in two ways holds the same numbers. And a
tensor past POOL_ELEMENTS repeats a pool of that many values, turned differently in every block: a
head of full size is there for its bytes, and a billion fresh normal numbers take half a minute.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np

POOL_ELEMENTS = 1 << 22

BYTES_OF = {
    "F32": 4,
    "F16": 2,
    "BF16": 2,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "I64": 8,
    "I32": 4,
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
}
_INTEGERS = {"I64": "<i8", "I32": "<i4", "BOOL": "?", "U8": "u1", "I8": "i1"}


@dataclasses.dataclass(frozen=True)
class Tensor:
    """One tensor to be written. `blocks()` gives its elements in row-major order, float or int."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    blocks: Callable[[], Iterator[np.ndarray]]

    @property
    def num_bytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * BYTES_OF[self.dtype]

    def renamed(self, name: str) -> Tensor:
        return dataclasses.replace(self, name=name)


def of_array(name: str, dtype: str, array: np.ndarray) -> Tensor:
    return Tensor(name, dtype, tuple(array.shape), lambda: iter([np.asarray(array).reshape(-1)]))


def random_normal(
    name: str, dtype: str, shape: Sequence[int], scale: float, seed: int, key: str
) -> Tensor:
    """Normal numbers of mean 0 and deviation `scale`."""

    def blocks() -> Iterator[np.ndarray]:
        generator = np.random.default_rng([seed, zlib.crc32(key.encode())])
        left = int(np.prod(shape, dtype=np.int64))
        pool = generator.standard_normal(min(left, POOL_ELEMENTS), np.float32) * np.float32(scale)
        turn = 0
        while left > 0:
            yield np.roll(pool, turn)[:left]
            left -= len(pool)
            turn = int(generator.integers(1, len(pool) + 1))

    return Tensor(name, dtype, tuple(shape), blocks)


# --- Number formats ---


def bf16_words(values: np.ndarray) -> np.ndarray:
    """float32 -> uint16 words of bf16, rounded to the nearest, ties to even. Finite values only."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> 16).astype(
        "<u2"
    )


@functools.cache
def fp8_values(dtype: str) -> np.ndarray:
    """[256] float32: what each byte stands for. NaN where it is no finite number.

    E4M3 is the variant without infinities: only 0x7F and 0xFF are no numbers, so the largest is
    448. E5M2 is a float16 cut after 8 bits.
    """
    codes = np.arange(256)
    exponent_bits, bias = {"F8_E4M3": (4, 7), "F8_E5M2": (5, 15)}[dtype]
    mantissa_bits = 7 - exponent_bits
    mantissa = (codes & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    exponent = (codes >> mantissa_bits) & ((1 << exponent_bits) - 1)
    size = np.where(
        exponent == 0,
        mantissa * 2.0 ** (1 - bias),
        (1 + mantissa) * 2.0 ** (exponent.astype(np.float64) - bias),
    )
    values = np.where(codes < 128, size, -size)
    largest = {"F8_E4M3": 448.0, "F8_E5M2": 57344.0}[dtype]
    return np.where(size > largest, np.nan, values).astype(np.float32)


def largest_fp8(dtype: str) -> float:
    return float(np.nanmax(fp8_values(dtype)))


def fp8_codes(values: np.ndarray, dtype: str) -> np.ndarray:
    """float32 -> the nearest code, as uint8; beyond the largest number the largest."""
    table = fp8_values(dtype)
    order = [code for code in np.argsort(table, kind="stable") if np.isfinite(table[code])]
    sizes = table[order]
    right = np.clip(np.searchsorted(sizes, values), 1, len(sizes) - 1)
    left = right - 1
    nearest = np.where(values - sizes[left] <= sizes[right] - values, left, right)
    return np.asarray(order, np.uint8)[nearest]


def _encode(block: np.ndarray, dtype: str) -> bytes:
    if dtype == "F32":
        return block.astype("<f4").tobytes()
    if dtype == "F16":
        return block.astype("<f2").tobytes()
    if dtype == "BF16":
        return bf16_words(block).tobytes()
    if dtype in _INTEGERS:
        return block.astype(_INTEGERS[dtype]).tobytes()
    return fp8_codes(block, dtype).tobytes()


# --- Files ---


def write_file(path: pathlib.Path, tensors: Sequence[Tensor]) -> int:
    """One safetensors file; returns the bytes of its tensors."""
    header: dict = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in tensors:
        header[tensor.name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + tensor.num_bytes],
        }
        offset += tensor.num_bytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors:
            start = file.tell()
            for block in tensor.blocks():
                file.write(_encode(block, tensor.dtype))
            written = file.tell() - start
            assert written == tensor.num_bytes, (tensor.name, written, tensor.num_bytes)
    return offset


def write_folder(folder: pathlib.Path, tensors: Sequence[Tensor], shards: int = 1) -> int:
    """model.safetensors, or shards with their index. Big elements first: all stay aligned."""
    tensors = sorted(tensors, key=lambda tensor: (-BYTES_OF[tensor.dtype], tensor.name))
    if shards == 1:
        return write_file(folder / "model.safetensors", tensors)
    total, weight_map = 0, {}
    for shard in range(shards):
        name = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        part = tensors[shard::shards]
        total += write_file(folder / name, part)
        weight_map |= {tensor.name: name for tensor in part}
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")
    return total
