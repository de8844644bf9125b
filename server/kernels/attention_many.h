// Attention of a block of many queries: they stand side by side, a vector holds one channel, or one
// row's scores, of all of them. Every row is read once for all, and no sum goes across a vector.
// Private to this folder.
#pragma once

#include <algorithm>
#include <type_traits>

#include "server/kernels/attention_block.h"
#include "server/kernels/vector.h"

namespace aerie {

// out[i][lane] = sum over k of a[i * a_row + k * a_step] * b[k][lane], on top of what is there
// with kAdd; rows i < kRows.
template <int W, int kRows, bool kAdd>
AERIE_INLINE void MultiplyTile(const float* a, int64_t a_row, int64_t a_step, const float* b,
                               int64_t steps, float* out) {
  using V = Vector<W>;
  typename V::Floats sums[kRows];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) sums[i] = kAdd ? V::Load(out + i * W) : typename V::Floats{};
  for (int64_t k = 0; k < steps; ++k) {
    const typename V::Floats right = V::Load(b + k * W);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) sums[i] += right * a[i * a_row + k * a_step];
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) V::Store(sums[i], out + i * W);
}

template <int W, bool kAdd>
AERIE_INLINE void Multiply(int64_t rows, const float* a, int64_t a_row, int64_t a_step,
                           const float* b, int64_t steps, float* out) {
  int64_t i = 0;
  for (; i + 8 <= rows; i += 8)
    MultiplyTile<W, 8, kAdd>(a + i * a_row, a_row, a_step, b, steps, out + i * W);
  for (; i < rows; ++i)
    MultiplyTile<W, 1, kAdd>(a + i * a_row, a_row, a_step, b, steps, out + i * W);
}

// The rows themselves where they are floats, else in `buffer` as floats.
template <typename T>
AERIE_INLINE const float* AsFloats(const T* rows, int64_t count, float* buffer) {
  if constexpr (std::is_same_v<T, float>) {
    return rows;
  } else {
    for (int64_t i = 0; i < count; ++i) buffer[i] = AsFloat(rows[i]);
    return buffer;
  }
}

// `rows`: those of scratch.chunks.
template <int W, typename T>
AERIE_INLINE void AttendMany(const AttentionArgs& args, const QueryBlock& block, int64_t rows,
                             AttentionScratch& scratch) {
  using V = Vector<W>;
  using Floats = typename V::Floats;
  const PagedRows& kv = args.kv;
  const int64_t widest = std::max(kv.key_dim, kv.value_dim);
  scratch.floats.resize(W * (kv.key_dim + kv.value_dim + rows) + kMaxChunkRows * widest);
  float* const queries = scratch.floats.data();  // [key_dim, W]
  float* const out = queries + W * kv.key_dim;   // [value_dim, W]
  float* const scores = out + W * kv.value_dim;  // [rows, W]
  float* const converted = scores + W * rows;    // of one chunk
  std::fill(queries, scores, 0.0f);
  for (int64_t q = 0; q < block.count; ++q) {
    const float* const query = QueryAt(args, block.first + q);
    for (int32_t d = 0; d < kv.key_dim; ++d) queries[d * W + q] = query[d] * args.scale;
  }

  const int64_t first_row = block.FirstRow(args);
  for (const RowChunk& chunk : scratch.chunks) {
    const int64_t count = chunk.rows.end - chunk.rows.begin;
    float* const own = scores + chunk.scores * W;
    const T* const keys = RowsAt<T>(kv.keys, kv.key_dim, kv, chunk.rows.begin);
    Multiply<W, false>(count, AsFloats(keys, count * kv.key_dim, converted), kv.key_dim, 1, queries,
                       kv.key_dim, own);
    for (int64_t row = first_row; row < first_row + block.Rows(args); ++row) {
      if (SeesAll(args.seen[row], chunk.rows)) continue;
      bool sees[kMaxChunkRows];
      MarkSeen(args.seen[row], chunk.rows, sees);
      const int64_t begin = std::max(row * args.group, block.first);
      const int64_t end = std::min((row + 1) * args.group, block.first + block.count);
      for (int64_t r = 0; r < count; ++r) {
        if (sees[r]) continue;
        for (int64_t q = begin; q < end; ++q) own[r * W + q - block.first] = kUnseen;
      }
    }
  }

  Floats largest = V::All(kUnseen);
  for (int64_t r = 0; r < rows; ++r) largest = Larger(V::Load(scores + r * W), largest);
  Floats total = {};
  for (const RowChunk& chunk : scratch.chunks) {
    const int64_t count = chunk.rows.end - chunk.rows.begin;
    float* const own = scores + chunk.scores * W;
    Floats sum = {};  // apart, so that long sequences lose no digits
    for (int64_t r = 0; r < count; ++r) {
      const Floats weight = Exp<W>(V::Load(own + r * W) - largest);
      V::Store(weight, own + r * W);
      sum += weight;
    }
    total += sum;
    const T* const values = RowsAt<T>(kv.values, kv.value_dim, kv, chunk.rows.begin);
    Multiply<W, true>(kv.value_dim, AsFloats(values, count * kv.value_dim, converted), 1,
                      kv.value_dim, own, count, out);
  }
  for (int64_t q = 0; q < block.count; ++q) {
    float* const result = OutAt(args, block.first + q);
    const float share = 1.0f / total[q];
    for (int32_t d = 0; d < kv.value_dim; ++d) result[d] = out[d * W + q] * share;
  }
}

}  // namespace aerie
