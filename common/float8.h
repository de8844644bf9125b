// Rows as float8_e4m3fn: one byte an element, and one scale for each row.
//
// A row is self-contained: its scale, a little-endian binary32 above 0, then its codes; so rows are
// cut, joined and sent again like those of any other type. A code is sign, 4 bits of exponent
// (bias 7) and 3 of fraction; there is no infinity, and only 0x7f and 0xff are NaN. Scales made
// here are powers of two: an element then has at most 4 significant bits, and bfloat16 holds it
// exactly.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/hidden_rows.h"

namespace aerie {

constexpr int64_t Fp8RowBytes(int64_t width) { return 4 + width; }

// The nearest code, ties to even; what is past 448 becomes 448, NaN stays NaN.
uint8_t FloatToFp8(float value);
float Fp8ToFloat(uint8_t code);

// A row with a NaN or an infinity becomes one of NaN, scale included, which servers refuse.
std::string EncodeFp8(const HiddenRows& rows);

// `bytes` as bfloat16, [rows, width], rounded where the scale is no power of two. INVALID_ARGUMENT,
// reason BYTE_COUNT, unless they are exactly so many rows; reason NON_FINITE for a scale that is
// not finite and above 0. NaN codes become NaN.
absl::StatusOr<std::string> DecodeFp8(std::string_view bytes, int64_t rows, int64_t width);

}  // namespace aerie
