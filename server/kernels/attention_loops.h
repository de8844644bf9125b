// The arithmetic of attention for vectors of W floats; attention.cc inlines it once for each
// CpuLevel. Private to this folder.
//
// Queries come in blocks of W. A block with many has them side by side in a vector, so that every
// row is read once and no sum goes across a vector. One with few would waste most of it, and works
// along the channels instead.
#pragma once

#include <algorithm>
#include <type_traits>

#include "server/kernels/attention.h"
#include "server/kernels/vector.h"

namespace aerie {

constexpr float kUnseen = -std::numeric_limits<float>::infinity();

// Queries first .. first + count - 1 of all, the rows' groups behind each other.
struct QueryBlock {
  int64_t first = 0, count = 0;

  int64_t FirstRow(const AttentionArgs& args) const { return first / args.group; }
  int64_t Rows(const AttentionArgs& args) const {
    return (first + count - 1) / args.group + 1 - FirstRow(args);
  }
};

inline const float* QueryAt(const AttentionArgs& args, int64_t query) {
  return args.queries + query / args.group * args.query_stride +
         query % args.group * args.kv.key_dim;
}

inline float* OutAt(const AttentionArgs& args, int64_t query) {
  return args.out + query / args.group * args.out_stride + query % args.group * args.kv.value_dim;
}

template <typename T>
const T* RowsAt(const std::byte* page_0, int64_t width, const PagedRows& kv, int64_t row) {
  return reinterpret_cast<const T*>(page_0 + kv.pages[row / kv.page_rows] * kv.page_bytes) +
         row % kv.page_rows * width;
}

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

// Queries side by side: a vector holds one channel, or one row's scores, of all queries.
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

template <int W, typename T>
AERIE_INLINE void AttendBlocks(const AttentionArgs& args, AttentionScratch& scratch) {
  const int64_t queries = args.rows * args.group;
  for (int64_t first = 0; first < queries; first += W) {
    const QueryBlock block{first, std::min<int64_t>(W, queries - first)};
    const int64_t rows = CutIntoChunks(args.seen + block.FirstRow(args), block.Rows(args),
                                       args.kv.page_rows, scratch.ranges, scratch.chunks);
    if (block.count <= W / 2) {
      AttendFew<W, T>(args, block, rows, scratch);
    } else {
      AttendMany<W, T>(args, block, rows, scratch);
    }
  }
}

template <int W>
AERIE_INLINE void AttendInElement(const AttentionArgs& args, AttentionScratch& scratch) {
  if (args.kv.element == KvElement::kFloat32) {
    AttendBlocks<W, float>(args, scratch);
  } else {
    AttendBlocks<W, uint16_t>(args, scratch);
  }
}

}  // namespace aerie
