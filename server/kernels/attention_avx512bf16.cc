// Attention with 512-bit vectors of bfloat16 pairs. Compiled for AVX-512 F, BW, DQ, VL and BF16:
// see product_panels.h before including anything here.
#include "server/kernels/attention_bf16.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512BF16__)

#include <immintrin.h>

#include "server/kernels/attention_sums.h"
#include "server/kernels/vector.h"

namespace aerie {
namespace {

constexpr int64_t kPiece = 32;
// Chunks lie apart, so the processor does not read ahead from one to the next by itself. Asked for
// so far ahead, and into the second cache, whose list of what is on its way is the longer one:
// eight sequences of 8,192 rows took 3.5 ms instead of 5.5 with 8 KiB into the first.
constexpr int64_t kAheadBytes = 32768;

AERIE_INLINE __m512 AddProducts(__m512 sum, __m512i a, __m512i b) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}

AERIE_INLINE int64_t Lesser(int64_t a, int64_t b) { return a < b ? a : b; }

// Scores of queries first .. + kQueries with the rows of a chunk.
template <int kQueries>
AERIE_INLINE void ScoreChunk(const Bf16Block& block, const Bf16Chunk& chunk, int64_t first) {
  const uint16_t* const queries = block.rounded + first * block.key_stride;
  const int64_t whole = block.key_dim / kPiece * kPiece;
  const auto rest = static_cast<__mmask32>((uint64_t{1} << (block.key_dim - whole)) - 1);
  for (int64_t row = 0; row < chunk.rows; row += kTileRows) {
    const uint16_t* keys[kTileRows];
#pragma GCC unroll 4
    for (int r = 0; r < kTileRows; ++r)  // behind the last row the last one once more
      keys[r] = chunk.keys + Lesser(row + r, chunk.rows - 1) * block.key_dim;
    __m512 sums[kQueries][kTileRows] = {};
    for (int64_t d = 0; d < whole; d += kPiece) {
      __m512i parts[kTileRows];
#pragma GCC unroll 4
      for (int r = 0; r < kTileRows; ++r) parts[r] = _mm512_loadu_si512(keys[r] + d);
#pragma GCC unroll 4
      for (int q = 0; q < kQueries; ++q) {
        const __m512i query = _mm512_load_si512(queries + q * block.key_stride + d);
#pragma GCC unroll 4
        for (int r = 0; r < kTileRows; ++r) sums[q][r] = AddProducts(sums[q][r], parts[r], query);
      }
    }
    if (rest != 0) {
#pragma GCC unroll 4
      for (int r = 0; r < kTileRows; ++r) {
        const __m512i part = _mm512_maskz_loadu_epi16(rest, keys[r] + whole);
#pragma GCC unroll 4
        for (int q = 0; q < kQueries; ++q) {
          sums[q][r] = AddProducts(sums[q][r], part,
                                   _mm512_load_si512(queries + q * block.key_stride + whole));
        }
      }
    }
    const __m512 scores = _mm512_mul_ps(SumAll<kQueries>(sums), _mm512_set1_ps(block.scale));
    alignas(64) float quarters[kTileQueries * kTileRows];
    _mm512_store_ps(quarters, scores);
    const auto there = static_cast<__mmask8>((1 << Lesser(kTileRows, chunk.rows - row)) - 1);
    float* const to = block.scores + first * block.score_stride + chunk.scores + row;
#pragma GCC unroll 4
    for (int q = 0; q < kQueries; ++q) {
      _mm_mask_storeu_ps(to + q * block.score_stride, there, _mm_load_ps(quarters + q * kTileRows));
    }
  }
}

// A query's scores become weights, as bfloat16 where the scores were; returns their sum.
AERIE_INLINE float WeightsOf(float* scores, int64_t count) {
  using V = Vector<kAvx512Width>;
  V::Floats most = V::Load(scores), total = {};
  for (int64_t i = 0; i < count; i += kAvx512Width) most = Larger(V::Load(scores + i), most);
  const float largest = Largest<kAvx512Width>(most);
  auto* const weights = reinterpret_cast<uint16_t*>(scores);
  for (int64_t i = 0; i < count; i += kAvx512Width) {
    StoreBFloat16<kAvx512Width>(Exp<kAvx512Width>(V::Load(scores + i) - largest), weights + i);
    total += V::Load(weights + i);  // of what is multiplied, so that they are shares of a whole
  }
  return Sum(total);
}

// Adds a chunk's weighted values to the sums of queries first .. + kQueries, for kPieces x 32
// channels from `channel` on. Pairs of rows go into one product, so a piece's channels come out in
// another order: see Take().
template <int kQueries, int kPieces, bool kWhole>
AERIE_INLINE void WeighChunk(const Bf16Block& block, const Bf16Chunk& chunk, int64_t first,
                             int64_t channel) {
  const auto there =
      static_cast<__mmask32>((uint64_t{1} << Lesser(kPiece, block.value_dim - channel)) - 1);
  const auto load = [&](int64_t row, int piece) __attribute__((always_inline)) {
    const uint16_t* const from = chunk.values + row * block.value_dim + channel + piece * kPiece;
    return kWhole ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi16(there, from);
  };
  float* const sums_at = block.sums + first * block.value_stride + channel;
  __m512 sums[kQueries][kPieces][2];
#pragma GCC unroll 4
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 2
    for (int p = 0; p < kPieces; ++p) {
      sums[q][p][0] = _mm512_load_ps(sums_at + q * block.value_stride + p * kPiece);
      sums[q][p][1] = _mm512_load_ps(sums_at + q * block.value_stride + p * kPiece + 16);
    }
  }
  const float* const scores = block.scores + first * block.score_stride;
  for (int64_t row = 0; row < chunk.rows; row += 2) {
    __m512i low[kPieces], high[kPieces];
#pragma GCC unroll 2
    for (int p = 0; p < kPieces; ++p) {
      const __m512i a = load(row, p);
      const __m512i b = row + 1 < chunk.rows ? load(row + 1, p) : _mm512_setzero_si512();
      low[p] = _mm512_unpacklo_epi16(a, b);
      high[p] = _mm512_unpackhi_epi16(a, b);
    }
#pragma GCC unroll 4
    for (int q = 0; q < kQueries; ++q) {
      int32_t pair;
      __builtin_memcpy(
          &pair,
          reinterpret_cast<const uint16_t*>(scores + q * block.score_stride) + chunk.scores + row,
          sizeof(pair));
      const __m512i weights = _mm512_set1_epi32(pair);
#pragma GCC unroll 2
      for (int p = 0; p < kPieces; ++p) {
        sums[q][p][0] = AddProducts(sums[q][p][0], low[p], weights);
        sums[q][p][1] = AddProducts(sums[q][p][1], high[p], weights);
      }
    }
  }
#pragma GCC unroll 4
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 2
    for (int p = 0; p < kPieces; ++p) {
      _mm512_store_ps(sums_at + q * block.value_stride + p * kPiece, sums[q][p][0]);
      _mm512_store_ps(sums_at + q * block.value_stride + p * kPiece + 16, sums[q][p][1]);
    }
  }
}

template <int kQueries>
AERIE_INLINE void WeighAll(const Bf16Block& block, const Bf16Chunk& chunk, int64_t first) {
  int64_t channel = 0;
  for (; channel + 2 * kPiece <= block.value_dim; channel += 2 * kPiece)
    WeighChunk<kQueries, 2, true>(block, chunk, first, channel);
  for (; channel + kPiece <= block.value_dim; channel += kPiece)
    WeighChunk<kQueries, 1, true>(block, chunk, first, channel);
  if (channel < block.value_dim) WeighChunk<kQueries, 1, false>(block, chunk, first, channel);
}

// Every tile of queries: calls tile(first, number of queries as a type).
template <typename Tile>
AERIE_INLINE void ForTiles(int64_t count, const Tile& tile) {
  int64_t first = 0;
  for (; first + 4 <= count; first += 4) tile.template operator()<4>(first);
  if (count - first == 3) return tile.template operator()<3>(first);
  if (count - first == 2) return tile.template operator()<2>(first);
  if (count - first == 1) return tile.template operator()<1>(first);
}

// Asks for the rows of the chunk that comes `ahead` chunks later.
AERIE_INLINE void AskFor(const Bf16Block& block, int64_t number, const uint16_t* Bf16Chunk::*rows,
                         int64_t width) {
  if (number >= block.chunk_count) return;
  const Bf16Chunk& chunk = block.chunks[number];
  const auto* const from = reinterpret_cast<const char*>(chunk.*rows);
  for (int64_t i = 0; i < chunk.rows * width * 2; i += 64) __builtin_prefetch(from + i, 0, 2);
}

// Chunks in `kAheadBytes`, if all are as long as the first.
AERIE_INLINE int64_t ChunksAhead(const Bf16Block& block, int64_t width) {
  const int64_t chunk_bytes = block.chunks[0].rows * width * 2;
  return (kAheadBytes + chunk_bytes - 1) / chunk_bytes;
}

// Puts a piece's channels in their order: of every eight of them the first four are in the first
// vector.
AERIE_INLINE void Take(const float* sums, float share, int64_t count, float* out) {
  const __m512 low = _mm512_load_ps(sums), high = _mm512_load_ps(sums + 16);
  const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
  const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
  const auto there = static_cast<__mmask32>((uint64_t{1} << Lesser(kPiece, count)) - 1);
  const __m512 all = _mm512_set1_ps(share);
  _mm512_mask_storeu_ps(out, static_cast<__mmask16>(there),
                        _mm512_mul_ps(_mm512_permutex2var_ps(low, first, high), all));
  _mm512_mask_storeu_ps(out + 16, static_cast<__mmask16>(there >> 16),
                        _mm512_mul_ps(_mm512_permutex2var_ps(low, second, high), all));
}

}  // namespace

void ScoreBf16(const Bf16Block& block) {
  for (int64_t q = 0; q < block.count; ++q) {
    uint16_t* const to = block.rounded + q * block.key_stride;
    for (int64_t d = 0; d < block.key_stride; ++d)
      to[d] = d < block.key_dim ? AsBFloat16(block.queries[q][d]) : uint16_t{0};
  }
  const int64_t ahead = ChunksAhead(block, block.key_dim);
  for (int64_t i = 0; i < Lesser(ahead, block.chunk_count); ++i)
    AskFor(block, i, &Bf16Chunk::keys, block.key_dim);
  for (int64_t i = 0; i < block.chunk_count; ++i) {
    AskFor(block, i + ahead, &Bf16Chunk::keys, block.key_dim);
    ForTiles(
        block.count, [&]<int kQueries>(int64_t first) __attribute__((always_inline)) {
          ScoreChunk<kQueries>(block, block.chunks[i], first);
        });
  }
}

void WeighBf16(const Bf16Block& block) {
  const int64_t ahead = ChunksAhead(block, block.value_dim);
  for (int64_t i = 0; i < Lesser(ahead, block.chunk_count); ++i)
    AskFor(block, i, &Bf16Chunk::values, block.value_dim);
  float shares[Bf16Block::kQueries];
  for (int64_t q = 0; q < block.count; ++q)
    shares[q] = 1.0f / WeightsOf(block.scores + q * block.score_stride, block.score_stride);
  for (int64_t i = 0; i < block.count * block.value_stride; ++i) block.sums[i] = 0.0f;
  for (int64_t i = 0; i < block.chunk_count; ++i) {
    AskFor(block, i + ahead, &Bf16Chunk::values, block.value_dim);
    ForTiles(
        block.count, [&]<int kQueries>(int64_t first) __attribute__((always_inline)) {
          WeighAll<kQueries>(block, block.chunks[i], first);
        });
  }
  for (int64_t q = 0; q < block.count; ++q) {
    for (int64_t d = 0; d < block.value_dim; d += kPiece) {
      Take(block.sums + q * block.value_stride + d, shares[q], block.value_dim - d,
           block.outs[q] + d);
    }
  }
}

}  // namespace aerie

#endif  // else this level is never picked
