// 16-bit floats as fp32, bit by bit, for bytes that may lie at any address.
#pragma once

#include <bit>
#include <cstdint>

namespace aerie {

// bfloat16 is the upper half of a binary32.
inline float Bf16ToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// IEEE 754 binary16, subnormals, infinities and NaN included.
float F16ToFloat(uint16_t bits);

// Round to nearest, ties to even; NaN stays NaN.
uint16_t FloatToBf16(float value);

}  // namespace aerie
