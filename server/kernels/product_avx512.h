// What product_loops.h asks of 512-bit vectors. With VNNI a pair of products of integers is added
// to its sum in one instruction instead of two, with BF16 one of bfloat16. Private to the files
// product_avx512*.cc.
#pragma once

#include <immintrin.h>

#include "server/kernels/product_loops.h"

namespace aerie {
namespace {

struct Avx512 {
  using Floats = __m512;
  using Integers = __m512i;
  static constexpr int kWidth = 16, kVectors = 2;
  static constexpr int kSinglePanels = 4, kFewRows = 4;

  static AERIE_INLINE Floats All(float value) { return _mm512_set1_ps(value); }
  static AERIE_INLINE Floats Load(const float* from) { return _mm512_loadu_ps(from); }
  static AERIE_INLINE void Store(Floats value, float* to) { _mm512_storeu_ps(to, value); }
  static AERIE_INLINE Floats MultiplyAdd(Floats a, Floats b, Floats c) {
    return _mm512_fmadd_ps(a, b, c);
  }
  template <int kHalf>
  static AERIE_INLINE Floats Weights(const float* from, int vector) {
    return _mm512_load_ps(from + 16 * vector);
  }
  template <int kHalf>
  static AERIE_INLINE Floats Weights(const uint16_t* from, int vector) {
    const __m512i both = _mm512_load_si512(from + 32 * vector);
    return _mm512_castsi512_ps(kHalf == 0 ? _mm512_slli_epi32(both, 16)
                                          : _mm512_and_si512(both, _mm512_set1_epi32(-65536)));
  }

#if defined(__AVX512BF16__)
  static constexpr bool kMultipliesHalves = true;
  using Halves = __m512i;  // pairs of bfloat16
  static AERIE_INLINE Halves AllHalves(const uint16_t* pair) {
    int32_t both;
    __builtin_memcpy(&both, pair, sizeof(both));
    return _mm512_set1_epi32(both);
  }
  static AERIE_INLINE Halves LoadHalves(const std::byte* from, int vector) {
    return _mm512_load_si512(from + 64 * vector);
  }
  static AERIE_INLINE Floats MultiplyAddHalves(Halves a, Halves b, Floats c) {
    return _mm512_dpbf16_ps(c, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
#else
  static constexpr bool kMultipliesHalves = false;
#endif

  static AERIE_INLINE Integers NoIntegers() { return _mm512_setzero_si512(); }
  static AERIE_INLINE Integers AllPairs(const int16_t* pair) {
    int32_t both;
    __builtin_memcpy(&both, pair, sizeof(both));
    return _mm512_set1_epi32(both);
  }
  static AERIE_INLINE Integers Widen(const std::byte* from, int vector) {
    return _mm512_cvtepi8_epi16(
        _mm256_load_si256(reinterpret_cast<const __m256i*>(from + 32 * vector)));
  }
  static AERIE_INLINE Integers MultiplyAddPairs(Integers a, Integers b, Integers c) {
#if defined(__AVX512VNNI__)
    return _mm512_dpwssd_epi32(c, a, b);
#else
    return _mm512_add_epi32(_mm512_madd_epi16(a, b), c);
#endif
  }
  static AERIE_INLINE Floats ToFloats(Integers value) { return _mm512_cvtepi32_ps(value); }

  // The largest tile of at most `rows` rows; returns its rows.
  template <PanelElement kElement, int kPanels>
  static AERIE_INLINE int64_t RunTile(int64_t rows, const std::byte* panel, int64_t panel_bytes,
                                      const TileInput& in, int64_t count, float* totals,
                                      int64_t stride) {
    if constexpr (kPanels == 1) {
      // Integers are no operands from memory, so more rows would need more registers.
      if (kElement != PanelElement::kInt8 && rows >= 12) {
        Tile<Avx512, kElement, 12, 1>(panel, panel_bytes, in, count, totals, stride);
        return 12;
      }
      if (rows >= 8) {
        Tile<Avx512, kElement, 8, 1>(panel, panel_bytes, in, count, totals, stride);
        return 8;
      }
      if (rows >= 6) {
        Tile<Avx512, kElement, 6, 1>(panel, panel_bytes, in, count, totals, stride);
        return 6;
      }
    }
    if constexpr (kPanels <= 2) {
      if (rows >= 4) {
        Tile<Avx512, kElement, 4, kPanels>(panel, panel_bytes, in, count, totals, stride);
        return 4;
      }
      if (rows == 3) {
        Tile<Avx512, kElement, 3, kPanels>(panel, panel_bytes, in, count, totals, stride);
        return 3;
      }
      if (rows == 2) {
        Tile<Avx512, kElement, 2, kPanels>(panel, panel_bytes, in, count, totals, stride);
        return 2;
      }
    }
    Tile<Avx512, kElement, 1, kPanels>(panel, panel_bytes, in, count, totals, stride);
    return 1;
  }
};

}  // namespace
}  // namespace aerie
