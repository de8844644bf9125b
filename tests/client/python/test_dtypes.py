"""How hidden states become bytes: known answers, then agreement with another implementation."""

import aerie_draft
import numpy as np
import pytest
from aerie_draft import DType

# float32 bits -> bf16 word. The rounded-off half decides, a tie goes to the even word.
KNOWN_ANSWERS = {
    "one": (0x3F800000, 0x3F80),
    "minus_two": (0xC0000000, 0xC000),
    "minus_zero_keeps_its_sign": (0x80000000, 0x8000),
    "just_below_the_tie_goes_down": (0x3F807FFF, 0x3F80),
    "a_tie_stays_at_the_even_word": (0x3F808000, 0x3F80),
    "just_above_the_tie_goes_up": (0x3F808001, 0x3F81),
    "a_tie_leaves_the_odd_word_upwards": (0x3F818000, 0x3F82),
    "the_mantissa_carries_into_the_exponent": (0x3FFFFFFF, 0x4000),
    "a_subnormal_is_rounded_like_any_other": (0x00018000, 0x0002),
    "the_largest_float_rounds_to_infinity": (0x7F7FFFFF, 0x7F80),
    "infinity_stays": (0x7F800000, 0x7F80),
    "minus_infinity_stays": (0xFF800000, 0xFF80),
    "a_nan_stays_a_nan": (0x7FC00000, 0x7FC0),
    "a_nan_in_the_lost_half_stays_a_nan": (0x7F800001, 0x7FC0),
    "a_nan_with_all_bits_does_not_wrap_to_zero": (0xFFFFFFFF, 0xFFFF),
}


@pytest.mark.parametrize("bits, word", KNOWN_ANSWERS.values(), ids=KNOWN_ANSWERS.keys())
def test_float_to_bf16_knows(bits, word):
    value = np.array([bits], np.uint32).view(np.float32)
    assert hex(aerie_draft.float_to_bf16(value)[0]) == hex(word)


def test_float_to_bf16_agrees_with_torch_on_every_exponent():
    torch = pytest.importorskip("torch")
    generator = np.random.default_rng(11)
    bits = generator.integers(0, 1 << 32, 1 << 18, dtype=np.uint64).astype(np.uint32)
    values = bits.view(np.float32)
    values = values[~np.isnan(values)]
    theirs = torch.from_numpy(values.copy()).to(torch.bfloat16).view(torch.int16).numpy()
    assert np.array_equal(aerie_draft.float_to_bf16(values), theirs.view(np.uint16))


def test_bf16_to_float_is_the_upper_half_of_a_float():
    words = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
    back = aerie_draft.float_to_bf16(aerie_draft.bf16_to_float(words))
    nan = np.isnan(aerie_draft.bf16_to_float(words))
    assert np.array_equal(back[~nan], words[~nan])
    assert np.all(np.isnan(aerie_draft.bf16_to_float(back[nan])))


@pytest.mark.parametrize(
    "dtype, expected",
    [
        (DType.BFLOAT16, "803f 00c0"),
        (DType.FLOAT16, "003c 00c0"),
        (DType.FLOAT32, "0000803f 000000c0"),
    ],
)
def test_encoded_rows_are_little_endian_bytes(dtype, expected):
    encoded = aerie_draft.encode_rows(np.array([[1.0, -2.0]]), dtype)
    assert encoded.tobytes() == bytes.fromhex(expected)


def test_encoded_rows_are_row_major_whatever_the_array_was():
    rows = np.asfortranarray(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32))
    encoded = aerie_draft.encode_rows(rows, DType.FLOAT32)
    assert np.frombuffer(encoded.tobytes(), "<f4").tolist() == [1, 2, 3, 4]


def test_bf16_words_pass_unchanged():
    words = np.array([[0x3F80, 0x7FC1]], np.uint16)
    assert np.array_equal(aerie_draft.encode_rows(words, DType.BFLOAT16), words)


@pytest.mark.parametrize(
    "rows, dtype, message",
    [
        (np.zeros(4, np.float32), DType.FLOAT32, r"shape \[4\]"),
        (np.zeros((2, 2), np.int32), DType.FLOAT32, "int32"),
        (np.zeros((2, 2), np.uint16), DType.FLOAT16, "uint16 words"),
    ],
    ids=["no_matrix", "integers", "bf16_words_for_another_dtype"],
)
def test_rows_that_cannot_be_meant_are_refused(rows, dtype, message):
    with pytest.raises(ValueError, match=message):
        aerie_draft.encode_rows(rows, dtype)


# float32 -> float8_e4m3fn, of rows whose largest value makes the scale 1: 448 beside it.
FP8_ANSWERS = {
    "one": (1.0, 0x38),
    "minus_two": (-2.0, 0xC0),
    "the_largest": (448.0, 0x7E),
    "a_tie_goes_to_the_even_code": (17.0, 0x58),
    "a_tie_leaves_the_odd_code_upwards": (19.0, 0x5A),
    "the_smallest_normal": (2.0**-6, 0x08),
    "the_largest_subnormal": (7 * 2.0**-9, 0x07),
    "a_subnormal_may_round_up_to_a_normal": (7.5 * 2.0**-9, 0x08),
    "half_of_the_smallest_goes_to_zero": (2.0**-10, 0x00),
    "minus_zero_keeps_its_sign": (-0.0, 0x80),
}


@pytest.mark.parametrize("value, code", FP8_ANSWERS.values(), ids=FP8_ANSWERS.keys())
def test_fp8_rows_know(value, code):
    (row,) = aerie_draft.float_to_fp8_rows(np.array([[448.0, value]], np.float32))
    assert row[:4].tobytes() == np.float32(1).tobytes()
    assert (hex(row[4]), hex(row[5])) == ("0x7e", hex(code))


def test_fp8_codes_are_those_of_torch():
    torch = pytest.importorskip("torch")
    generator = np.random.default_rng(7)
    rows = generator.normal(0, 1, (64, 300)) * np.exp(generator.uniform(-12, 12, (64, 1)))
    encoded = aerie_draft.float_to_fp8_rows(rows)
    scales = encoded[:, :4].copy().view("<f4")
    assert np.all(np.log2(scales) % 1 == 0)
    assert np.all(np.abs(rows / scales).max(axis=1) <= 448)
    assert np.all(np.abs(rows / scales).max(axis=1) > 224)
    theirs = torch.from_numpy((rows / scales).astype(np.float32)).to(torch.float8_e4m3fn)
    assert np.array_equal(encoded[:, 4:], theirs.view(torch.uint8).numpy())
    assert np.array_equal(aerie_draft.fp8_rows_to_float(encoded), theirs.float().numpy() * scales)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_becomes_nan_and_its_neighbour_does_not(bad):
    rows = aerie_draft.fp8_rows_to_float(aerie_draft.float_to_fp8_rows([[1, bad, 2], [1, 0, 2]]))
    assert np.all(np.isnan(rows[0]))
    assert rows[1].tolist() == [1, 0, 2]


def test_fp8_rows_that_are_finite_come_back_finite():
    encoded = aerie_draft.float_to_fp8_rows([[3.4e38, -3.39e38, 3.0e38, 0.0]])
    rows = aerie_draft.fp8_rows_to_float(encoded)
    assert rows.tolist() == [[1.875 * 2.0**127, -1.875 * 2.0**127, 1.75 * 2.0**127, 0.0]]


def test_rows_of_zeros_and_no_rows_are_fp8_rows_too():
    assert np.all(aerie_draft.fp8_rows_to_float(aerie_draft.float_to_fp8_rows([[0.0, 0.0]])) == 0)
    assert aerie_draft.float_to_fp8_rows(np.zeros((0, 6))).shape == (0, 10)


def test_fp8_rows_pass_unchanged():
    encoded = aerie_draft.float_to_fp8_rows([[1.0, 2.0]])
    assert aerie_draft.encode_rows(encoded, DType.FLOAT8_E4M3FN) is encoded
