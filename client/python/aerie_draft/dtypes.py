"""Element types of hidden states and how rows become bytes.

NumPy has no bfloat16: such rows are arrays of uint16 words here, and a uint16 array is taken to be
bf16 words already. Bytes on the wire are little-endian on every machine.
"""

from __future__ import annotations

import enum

import numpy as np


class DType(enum.Enum):
    """Element type of hidden states on the wire; the value is the number in the contract."""

    FLOAT32 = 1
    FLOAT16 = 2
    BFLOAT16 = 3

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return 4 if self is DType.FLOAT32 else 2

    @property
    def storage(self) -> np.dtype:
        """The NumPy type that holds encoded rows."""
        return np.dtype({DType.FLOAT32: "<f4", DType.FLOAT16: "<f2", DType.BFLOAT16: "<u2"}[self])


def float_to_bf16(values: np.ndarray) -> np.ndarray:
    """float32 values -> uint16 bf16 words, rounded to nearest, ties to even.

    Infinities stay; a NaN stays a NaN, quiet, with its sign. The largest float32 values round to
    infinity, as the hardware does.
    """
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    # Adding 0x7fff rounds down below the tie, up above it; the lowest kept bit breaks the tie.
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    words = rounded.astype(np.uint16)
    nan = np.isnan(values)
    if np.any(nan):
        quiet = (bits >> np.uint32(16)).astype(np.uint16) | np.uint16(0x0040)
        words = np.where(nan, quiet, words)
    return words


def bf16_to_float(words: np.ndarray) -> np.ndarray:
    """uint16 bf16 words -> the float32 values they stand for, exactly."""
    return (np.asarray(words, np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def encode_rows(rows: np.ndarray, dtype: DType) -> np.ndarray:
    """[r, width] rows as an array of `dtype.storage`, C-contiguous: its bytes are the wire's.

    Floating-point rows are converted. uint16 rows are bf16 words and fit only BFLOAT16.
    """
    rows = np.asarray(rows)
    if rows.ndim != 2:
        raise ValueError(
            f"hidden states have shape {list(rows.shape)}; expected [rows, width]; reshape them"
        )
    if rows.dtype == np.uint16:
        if dtype is not DType.BFLOAT16:
            raise ValueError(
                f"hidden states are uint16 words, which stand for bf16, but the session's dtype is "
                f"{dtype.name}; give floating-point rows or open the session with BFLOAT16"
            )
        return np.ascontiguousarray(rows, dtype.storage)
    if not np.issubdtype(rows.dtype, np.floating):
        raise ValueError(
            f"hidden states have dtype {rows.dtype}; expected a floating-point dtype or uint16 "
            "bf16 words; convert them"
        )
    if dtype is DType.BFLOAT16:
        return np.ascontiguousarray(float_to_bf16(rows), dtype.storage)
    with np.errstate(
        over="ignore"
    ):  # What leaves fp16's range turns infinite: the server names it.
        return np.ascontiguousarray(rows, dtype.storage)
