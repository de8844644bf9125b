// Attention of a block of few queries: up to four read every row together, and a vector holds
// channels, or scores, of one query. Private to this folder.
#pragma once

#include <algorithm>
#include <vector>

#include "server/kernels/attention_block.h"
#include "server/kernels/vector.h"

namespace aerie {

// scores[q * stride + r] = queries[q] . keys[r], for kQueries queries and kRows rows.
template <int W, int kQueries, int kRows, typename T>
AERIE_INLINE void DotTile(const float* const* queries, const T* keys, int64_t width, float scale,
                          float* scores, int64_t stride) {
  using V = Vector<W>;
  typename V::Floats sums[kQueries * kRows] = {};
  int64_t d = 0;
  for (; d + W <= width; d += W) {
    typename V::Floats parts[kRows];
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r) parts[r] = V::Load(keys + r * width + d);
#pragma GCC unroll 4
    for (int q = 0; q < kQueries; ++q) {
      const typename V::Floats query = V::Load(queries[q] + d);
#pragma GCC unroll 2
      for (int r = 0; r < kRows; ++r) sums[q * kRows + r] += query * parts[r];
    }
  }
#pragma GCC unroll 4
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r) {
      float sum = Sum(sums[q * kRows + r]);
      for (int64_t rest = d; rest < width; ++rest)
        sum += queries[q][rest] * AsFloat(keys[r * width + rest]);
      scores[q * stride + r] = sum * scale;
    }
  }
}

// outs[q][d] += sum over r of weights[q * stride + r] * values[r][d], for kVectors vectors of
// channels.
template <int W, int kQueries, int kVectors, typename T>
AERIE_INLINE void WeighTile(const float* weights, int64_t stride, const T* values, int64_t width,
                            int64_t rows, float* const* outs, int64_t first) {
  using V = Vector<W>;
  typename V::Floats sums[kQueries * kVectors];
#pragma GCC unroll 4
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 2
    for (int i = 0; i < kVectors; ++i) sums[q * kVectors + i] = V::Load(outs[q] + first + i * W);
  }
  for (int64_t r = 0; r < rows; ++r) {
    typename V::Floats parts[kVectors];
#pragma GCC unroll 2
    for (int i = 0; i < kVectors; ++i) parts[i] = V::Load(values + r * width + first + i * W);
#pragma GCC unroll 4
    for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 2
      for (int i = 0; i < kVectors; ++i)
        sums[q * kVectors + i] += parts[i] * weights[q * stride + r];
    }
  }
#pragma GCC unroll 4
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 2
    for (int i = 0; i < kVectors; ++i) V::Store(sums[q * kVectors + i], outs[q] + first + i * W);
  }
}

// kQueries queries that read every row together: a vector holds channels, or scores, of one.
// `scores` [kQueries, stride], of which every row belongs to a seen row or holds kUnseen.
template <int W, int kQueries, typename T>
AERIE_INLINE void AttendTogether(const AttentionArgs& args, int64_t first,
                                 const std::vector<RowChunk>& chunks, float* scores,
                                 int64_t stride) {
  using V = Vector<W>;
  using Floats = typename V::Floats;
  const PagedRows& kv = args.kv;
  const float* queries[kQueries];
  float* outs[kQueries];
  for (int q = 0; q < kQueries; ++q) {
    queries[q] = QueryAt(args, first + q);
    outs[q] = OutAt(args, first + q);
    std::fill(outs[q], outs[q] + kv.value_dim, 0.0f);
  }
  for (const RowChunk& chunk : chunks) {
    const int64_t count = chunk.rows.end - chunk.rows.begin;
    const T* const keys = RowsAt<T>(kv.keys, kv.key_dim, kv, chunk.rows.begin);
    float* const own = scores + chunk.scores;
    int64_t r = 0;
    for (; r + 2 <= count; r += 2)
      DotTile<W, kQueries, 2>(queries, keys + r * kv.key_dim, kv.key_dim, args.scale, own + r,
                              stride);
    if (r < count)
      DotTile<W, kQueries, 1>(queries, keys + r * kv.key_dim, kv.key_dim, args.scale, own + r,
                              stride);
    for (int q = 0; q < kQueries; ++q) {
      const SeenRows& seen = args.seen[(first + q) / args.group];
      if (SeesAll(seen, chunk.rows)) continue;
      bool sees[kMaxChunkRows];
      MarkSeen(seen, chunk.rows, sees);
      for (r = 0; r < count; ++r) {
        if (!sees[r]) own[q * stride + r] = kUnseen;
      }
    }
  }
  float shares[kQueries];
  for (int q = 0; q < kQueries; ++q) {
    Floats most = V::All(kUnseen), sums = {};
    for (int64_t r = 0; r < stride; r += W) most = Larger(V::Load(scores + q * stride + r), most);
    const float largest = Largest<W>(most);
    for (int64_t r = 0; r < stride; r += W) {
      const Floats weight = Exp<W>(V::Load(scores + q * stride + r) - largest);
      V::Store(weight, scores + q * stride + r);
      sums += weight;
    }
    shares[q] = 1.0f / Sum(sums);
  }
  for (const RowChunk& chunk : chunks) {
    const int64_t count = chunk.rows.end - chunk.rows.begin;
    const T* const values = RowsAt<T>(kv.values, kv.value_dim, kv, chunk.rows.begin);
    const float* const own = scores + chunk.scores;
    int64_t d = 0;
    for (; d + 2 * W <= kv.value_dim; d += 2 * W)
      WeighTile<W, kQueries, 2>(own, stride, values, kv.value_dim, count, outs, d);
    for (; d + W <= kv.value_dim; d += W)
      WeighTile<W, kQueries, 1>(own, stride, values, kv.value_dim, count, outs, d);
    for (; d < kv.value_dim; ++d) {
      for (int64_t r = 0; r < count; ++r) {
        const float value = AsFloat(values[r * kv.value_dim + d]);
        for (int q = 0; q < kQueries; ++q) outs[q][d] += value * own[q * stride + r];
      }
    }
  }
  for (int q = 0; q < kQueries; ++q) {
    for (int32_t d = 0; d < kv.value_dim; ++d) outs[q][d] *= shares[q];
  }
}

template <int W, typename T>
AERIE_INLINE void AttendFew(const AttentionArgs& args, const QueryBlock& block, int64_t rows,
                            AttentionScratch& scratch) {
  const int64_t stride = (rows + W - 1) / W * W;
  scratch.floats.resize(4 * stride);
  float* const scores = scratch.floats.data();
  for (int64_t q = 0; q < block.count;) {
    const int64_t left = block.count - q, first = block.first + q;
    for (int64_t i = 0; i < 4; ++i)  // behind the rows, where vectors read on
      std::fill(scores + i * stride + rows, scores + (i + 1) * stride, kUnseen);
    if (left >= 4) {
      AttendTogether<W, 4, T>(args, first, scratch.chunks, scores, stride);
      q += 4;
    } else if (left == 3) {
      AttendTogether<W, 3, T>(args, first, scratch.chunks, scores, stride);
      q += 3;
    } else if (left == 2) {
      AttendTogether<W, 2, T>(args, first, scratch.chunks, scores, stride);
      q += 2;
    } else {
      AttendTogether<W, 1, T>(args, first, scratch.chunks, scores, stride);
      q += 1;
    }
  }
}

}  // namespace aerie
