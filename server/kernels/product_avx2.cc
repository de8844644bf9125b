// Products with 256-bit vectors. Compiled for AVX2 and FMA: see product_panels.h before including
// anything here.
#include "server/kernels/product_panels.h"

#if defined(__AVX2__) && defined(__FMA__)

#include <immintrin.h>

#include "server/kernels/product_loops.h"

namespace aerie {
namespace {

struct Avx2 {
  using Floats = __m256;
  using Integers = __m256i;
  static constexpr int kWidth = 8, kVectors = 4;
  // 16 registers: two panels of one row, or one panel of two or three.
  static constexpr int kSinglePanels = 2, kFewRows = 1;
  static constexpr bool kMultipliesHalves = false;

  static AERIE_INLINE Floats All(float value) { return _mm256_set1_ps(value); }
  static AERIE_INLINE Floats Load(const float* from) { return _mm256_loadu_ps(from); }
  static AERIE_INLINE void Store(Floats value, float* to) { _mm256_storeu_ps(to, value); }
  static AERIE_INLINE Floats MultiplyAdd(Floats a, Floats b, Floats c) {
    return _mm256_fmadd_ps(a, b, c);
  }
  template <int kHalf>
  static AERIE_INLINE Floats Weights(const float* from, int vector) {
    return _mm256_load_ps(from + 8 * vector);
  }
  template <int kHalf>
  static AERIE_INLINE Floats Weights(const uint16_t* from, int vector) {
    const __m256i both = _mm256_load_si256(reinterpret_cast<const __m256i*>(from) + vector);
    return _mm256_castsi256_ps(kHalf == 0 ? _mm256_slli_epi32(both, 16)
                                          : _mm256_and_si256(both, _mm256_set1_epi32(-65536)));
  }

  static AERIE_INLINE Integers NoIntegers() { return _mm256_setzero_si256(); }
  static AERIE_INLINE Integers AllPairs(const int16_t* pair) {
    int32_t both;
    __builtin_memcpy(&both, pair, sizeof(both));
    return _mm256_set1_epi32(both);
  }
  static AERIE_INLINE Integers Widen(const std::byte* from, int vector) {
    return _mm256_cvtepi8_epi16(
        _mm_load_si128(reinterpret_cast<const __m128i*>(from + 16 * vector)));
  }
  static AERIE_INLINE Integers MultiplyAddPairs(Integers a, Integers b, Integers c) {
    return _mm256_add_epi32(_mm256_madd_epi16(a, b), c);
  }
  static AERIE_INLINE Floats ToFloats(Integers value) { return _mm256_cvtepi32_ps(value); }

  // The largest tile of at most `rows` rows; returns its rows.
  template <PanelElement kElement, int kPanels>
  static AERIE_INLINE int64_t RunTile(int64_t rows, const std::byte* panel, int64_t panel_bytes,
                                      const TileInput& in, int64_t count, float* totals,
                                      int64_t stride) {
    if constexpr (kPanels == 1) {
      // Weights that are unpacked take registers from the sums.
      if (kElement == PanelElement::kFloat32 && rows >= 3) {
        Tile<Avx2, kElement, 3, 1>(panel, panel_bytes, in, count, totals, stride);
        return 3;
      }
      if (rows >= 2) {
        Tile<Avx2, kElement, 2, 1>(panel, panel_bytes, in, count, totals, stride);
        return 2;
      }
    }
    Tile<Avx2, kElement, 1, kPanels>(panel, panel_bytes, in, count, totals, stride);
    return 1;
  }
};

}  // namespace

void MultiplyAvx2(const PanelProduct& product, int64_t first, int64_t end) {
  MultiplyAll<Avx2>(product, first, end);
}

}  // namespace aerie

#else  // a compiler or a processor without: this level is never picked there

namespace aerie {

void MultiplyAvx2(const PanelProduct& product, int64_t first, int64_t end) {
  MultiplyReference(product, first, end);
}

}  // namespace aerie

#endif
