// Sums across sixteen vectors of 16 floats at once, which takes fewer instructions than one after
// the other. Private to attention_avx512bf16.cc, which is why all of it has internal linkage.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "server/kernels/cpu_level.h"

namespace aerie {
namespace {

constexpr int64_t kTileQueries = 4, kTileRows = 4;

// Of each 128 bits two numbers of `a` and two of `b`, both of which are sums of two.
AERIE_INLINE __m512 FoldPairs(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
}
AERIE_INLINE __m512 FoldHalves(__m512 a, __m512 b) {
  const __m512d x = _mm512_castps_pd(a), y = _mm512_castps_pd(b);
  return _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(x, y)),
                       _mm512_castpd_ps(_mm512_unpackhi_pd(x, y)));
}
AERIE_INLINE __m512 FoldQuarters(__m512 a, __m512 b) {
  return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
}

// The sums of four vectors, four times: what quarter q of the result is divided among.
template <int kQueries>
AERIE_INLINE __m512 SumAll(const __m512 (&v)[kQueries][kTileRows]) {
  __m512 rows[kTileQueries];
#pragma GCC unroll 4
  for (int q = 0; q < kTileQueries; ++q) {
    rows[q] = q < kQueries ? FoldHalves(FoldPairs(v[q][0], v[q][1]), FoldPairs(v[q][2], v[q][3]))
                           : _mm512_setzero_ps();
  }
  return FoldQuarters(FoldQuarters(rows[0], rows[1]), FoldQuarters(rows[2], rows[3]));
}

}  // namespace
}  // namespace aerie
