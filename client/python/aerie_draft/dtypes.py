"""Element types of hidden states and how rows become bytes.

NumPy has no bfloat16: such rows are arrays of uint16 words here, and a uint16 array is taken to be
bf16 words already. Nor has it fp8: such rows are arrays of bytes, four wider than the row, since
each begins with its scale. Bytes on the wire are little-endian on every machine.
"""

from __future__ import annotations

import enum

import numpy as np


class DType(enum.Enum):
    """Element type of hidden states on the wire; the value is the number in the contract."""

    FLOAT32 = 1
    FLOAT16 = 2
    BFLOAT16 = 3
    # float8_e4m3fn with a float32 scale in front of each row. Only on the wire: recordings and the
    # vLLM worker do not write it.
    FLOAT8_E4M3FN = 4

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return {DType.FLOAT32: 4, DType.FLOAT8_E4M3FN: 1}.get(self, 2)

    @property
    def storage(self) -> np.dtype:
        """The NumPy type that holds encoded rows."""
        return np.dtype(
            {
                DType.FLOAT32: "<f4",
                DType.FLOAT16: "<f2",
                DType.BFLOAT16: "<u2",
                DType.FLOAT8_E4M3FN: "u1",
            }[self]
        )

    def encoded_width(self, width: int) -> int:
        """Items of `storage` that a row of `width` elements takes."""
        return width + _SCALE_BYTES if self is DType.FLOAT8_E4M3FN else width

    def row_bytes(self, width: int) -> int:
        """Bytes of a row of `width` elements on the wire."""
        return self.encoded_width(width) * self.storage.itemsize


# Without the one that exists on the wire alone.
PLAIN_DTYPES = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)

_SCALE_BYTES = 4
_FP8_LARGEST = 448.0
_FP8_NAN = 0x7F


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


def float_to_fp8_rows(rows: np.ndarray) -> np.ndarray:
    """[r, width] float rows -> uint8 [r, 4 + width]: of each row its scale, a little-endian
    float32, then its float8_e4m3fn codes, rounded to nearest, ties to even.

    Scales are powers of two, the smallest that bring a row's largest value to 448 or below. A row
    that is not finite becomes one of NaN, scale included, which servers refuse.
    """
    rows = np.ascontiguousarray(rows, np.float32)
    largest = np.max(np.abs(rows), axis=1, initial=0.0)  # NaN when one is in the row
    finite = np.isfinite(largest)
    fraction, exponent = np.frexp(np.where(finite & (largest > 0), largest, 256.0))
    scale = np.ldexp(np.float64(1), np.maximum(exponent - 9 + (fraction > 0.875), -126))
    with np.errstate(invalid="ignore"):  # What is not finite is replaced below.
        values = (rows / scale[:, None]).astype(np.float32)
    # With the largest of all scales, codes above 240 would come back as infinite.
    most = np.where(scale < 2.0**120, _FP8_LARGEST, 240.0).astype(np.float32)
    size = np.minimum(np.abs(values), most[:, None])
    bits = size.view(np.uint32)
    rounded = bits + np.uint32(0x7FFFF) + ((bits >> np.uint32(20)) & np.uint32(1))
    normal = (rounded >> np.uint32(20)) - np.uint32((127 - 7) << 3)
    small = size < 2.0**-6  # Subnormal, in steps of 2^-9.
    subnormal = np.rint(np.where(small, size, 0) * 512).astype(np.uint32)
    codes = np.where(small, subnormal, normal).astype(np.uint8)
    codes |= np.signbit(values).astype(np.uint8) << 7
    codes[~finite] = _FP8_NAN
    scale[~finite] = np.nan
    scales = scale.astype("<f4").view(np.uint8).reshape(-1, _SCALE_BYTES)
    return np.concatenate([scales, codes], axis=1)


def fp8_rows_to_float(encoded: np.ndarray) -> np.ndarray:
    """uint8 [r, 4 + width] -> the float32 [r, width] that they stand for."""
    encoded = np.ascontiguousarray(encoded, np.uint8)
    scales = encoded[:, :_SCALE_BYTES].copy().view("<f4")
    return scales * _FP8_VALUES[encoded[:, _SCALE_BYTES:]]


def _fp8_values() -> np.ndarray:
    codes = np.arange(256)
    exponent, fraction = (codes >> 3) & 0xF, codes & 7
    size = np.where(
        exponent == 0, np.ldexp(1.0 * fraction, -9), np.ldexp(8.0 + fraction, exponent - 10)
    )
    size[(codes & 0x7F) == _FP8_NAN] = np.nan
    return np.where(codes & 0x80, -size, size).astype(np.float32)


_FP8_VALUES = _fp8_values()


def encode_rows(rows: np.ndarray, dtype: DType) -> np.ndarray:
    """[r, width] rows as an array of `dtype.storage`, C-contiguous: its bytes are the wire's.

    Floating-point rows are converted. uint16 rows are bf16 words and fit only BFLOAT16; uint8 rows
    are fp8 rows as they come from here and fit only FLOAT8_E4M3FN.
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
    if rows.dtype == np.uint8 and dtype is DType.FLOAT8_E4M3FN:
        return np.ascontiguousarray(rows)
    if not np.issubdtype(rows.dtype, np.floating):
        raise ValueError(
            f"hidden states have dtype {rows.dtype}; expected a floating-point dtype or uint16 "
            "bf16 words; convert them"
        )
    if dtype is DType.BFLOAT16:
        return np.ascontiguousarray(float_to_bf16(rows), dtype.storage)
    if dtype is DType.FLOAT8_E4M3FN:
        return float_to_fp8_rows(rows)
    with np.errstate(
        over="ignore"
    ):  # What leaves fp16's range turns infinite: the server names it.
        return np.ascontiguousarray(rows, dtype.storage)
