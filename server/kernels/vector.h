// Vectors of W floats in the compilers' own notation, for code that is inlined into a function of
// some CpuLevel. Private to this folder.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "server/kernels/cpu_level.h"

namespace aerie {

template <int W>
struct VectorTypes;  // of these three widths only: a size that is a template's argument is lost

#define AERIE_VECTOR_TYPES(W)                                                                 \
  template <>                                                                                 \
  struct VectorTypes<W> {                                                                     \
    typedef float Floats __attribute__((vector_size(W * 4)));                                 \
    typedef uint32_t Words __attribute__((vector_size(W * 4)));                               \
    typedef uint16_t Halves __attribute__((vector_size(W * 2)));                              \
    /* The same as they may lie in memory. */                                                 \
    typedef float StoredFloats __attribute__((vector_size(W * 4), aligned(4), may_alias));    \
    typedef uint16_t StoredHalves __attribute__((vector_size(W * 2), aligned(2), may_alias)); \
  }
AERIE_VECTOR_TYPES(kBaselineWidth);
AERIE_VECTOR_TYPES(kAvx2Width);
AERIE_VECTOR_TYPES(kAvx512Width);
#undef AERIE_VECTOR_TYPES

template <int W>
struct Vector : VectorTypes<W> {
  using typename VectorTypes<W>::Floats;
  using typename VectorTypes<W>::Words;
  using typename VectorTypes<W>::Halves;
  using typename VectorTypes<W>::StoredFloats;
  using typename VectorTypes<W>::StoredHalves;

  static AERIE_INLINE Floats Load(const float* from) {
    return *reinterpret_cast<const StoredFloats*>(from);
  }
  // bfloat16: the upper halves of floats.
  static AERIE_INLINE Floats Load(const uint16_t* from) {
    const Halves halves = *reinterpret_cast<const StoredHalves*>(from);
    return reinterpret_cast<Floats>(__builtin_convertvector(halves, Words) << 16);
  }
  static AERIE_INLINE void Store(Floats value, float* to) {
    *reinterpret_cast<StoredFloats*>(to) = value;
  }
  static AERIE_INLINE Floats All(float value) {
    Floats all;
    for (int i = 0; i < W; ++i) all[i] = value;
    return all;
  }
};

AERIE_INLINE float AsFloat(float value) { return value; }
AERIE_INLINE float AsFloat(uint16_t bfloat16) {
  return std::bit_cast<float>(uint32_t{bfloat16} << 16);
}

// To the nearest bfloat16, ties to even; NaN stays NaN.
AERIE_INLINE uint16_t AsBFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
template <int W>
AERIE_INLINE void StoreBFloat16(typename Vector<W>::Floats value, uint16_t* to) {
  using V = Vector<W>;
  using Words = typename V::Words;
  const Words bits = reinterpret_cast<Words>(value);
  const Words rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const Words kept = value != value ? (bits >> 16 | 0x40) : rounded;
  *reinterpret_cast<typename V::StoredHalves*>(to) =
      __builtin_convertvector(kept, typename V::Halves);
}

template <typename V>
AERIE_INLINE V Larger(V a, V b) {
  return a > b ? a : b;
}

AERIE_INLINE float Sum(Vector<4>::Floats v) { return (v[0] + v[2]) + (v[1] + v[3]); }
AERIE_INLINE float Sum(Vector<8>::Floats v) {
  return Sum(__builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7));
}
AERIE_INLINE float Sum(Vector<16>::Floats v) {
  return Sum(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
             __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15));
}

template <int W>
AERIE_INLINE float Largest(typename Vector<W>::Floats v) {
  float largest = v[0];
  for (int i = 1; i < W; ++i) largest = v[i] > largest ? v[i] : largest;
  return largest;
}

// e^x for x <= 0, to 2 units in the last place; 0 where the result would be denormal, as of minus
// infinity. NaN stays NaN.
template <int W>
AERIE_INLINE typename Vector<W>::Floats Exp(typename Vector<W>::Floats x) {
  using Floats = typename Vector<W>::Floats;
  using Words = typename Vector<W>::Words;
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  // Adding it leaves the nearest integer in the lowest bits.
  constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23
  constexpr float kSmallest = -87.0f;
  const Floats shifted = x * kLog2E + kRounder;
  const Floats n = shifted - kRounder;
  const Floats r = (x - n * kLn2High) - n * kLn2Low;  // |r| <= ln(2) / 2
  Floats series = r * (1.0f / 5040) + 1.0f / 720;
  series = series * r + 1.0f / 120;
  series = series * r + 1.0f / 24;
  series = series * r + 1.0f / 6;
  series = series * r + 0.5f;
  series = series * r + 1.0f;
  series = series * r + 1.0f;
  const Words exponent = (reinterpret_cast<Words>(shifted) + 127u) << 23;
  const Floats result = series * reinterpret_cast<Floats>(exponent);
  return x < kSmallest ? Floats{} : result;
}

}  // namespace aerie
