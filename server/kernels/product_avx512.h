// What product_loops.h asks of 512-bit vectors. With VNNI a pair of products is added to its sum in
// one instruction instead of two. Private to product_avx512.cc and product_avx512vnni.cc.
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
  static AERIE_INLINE void Weights(const float* from, Floats* to) {
    to[0] = _mm512_load_ps(from);
    to[1] = _mm512_load_ps(from + 16);
  }
  static AERIE_INLINE void Weights(const uint16_t* from, Floats* to) {
    const __m512i words = _mm512_load_si512(from);
    to[0] = _mm512_castsi512_ps(_mm512_slli_epi32(words, 16));
    to[1] = _mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32(-65536)));
  }

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
