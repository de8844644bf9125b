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

// scores[i] = query . keys[i], for kRows rows.
template <int W, int kRows, typename T>
AERIE_INLINE void DotTile(const float* query, const T* keys, int64_t width, float scale,
                          float* scores) {
  using V = Vector<W>;
  typename V::Floats sums[kRows] = {};
  int64_t d = 0;
  for (; d + W <= width; d += W) {
    const typename V::Floats part = V::Load(query + d);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) sums[i] += part * V::Load(keys + i * width + d);
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) {
    float sum = Sum(sums[i]);
    for (int64_t rest = d; rest < width; ++rest)
      sum += query[rest] * AsFloat(keys[i * width + rest]);
    scores[i] = sum * scale;
  }
}

// out[d] += sum over r of weights[r] * values[r][d], for kVectors vectors of channels.
template <int W, int kVectors, typename T>
AERIE_INLINE void WeighTile(const float* weights, const T* values, int64_t width, int64_t rows,
                            float* out) {
  using V = Vector<W>;
  typename V::Floats sums[kVectors];
#pragma GCC unroll 4
  for (int i = 0; i < kVectors; ++i) sums[i] = V::Load(out + i * W);
  for (int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) sums[i] += V::Load(values + r * width + i * W) * weights[r];
  }
#pragma GCC unroll 4
  for (int i = 0; i < kVectors; ++i) V::Store(sums[i], out + i * W);
}

template <int W, typename T>
AERIE_INLINE void Weigh(const float* weights, const T* values, int64_t width, int64_t rows,
                        float* out) {
  int64_t d = 0;
  for (; d + 4 * W <= width; d += 4 * W) WeighTile<W, 4>(weights, values + d, width, rows, out + d);
  for (; d + W <= width; d += W) WeighTile<W, 1>(weights, values + d, width, rows, out + d);
  for (; d < width; ++d) {
    for (int64_t r = 0; r < rows; ++r) out[d] += AsFloat(values[r * width + d]) * weights[r];
  }
}

// One query after the other: a vector holds channels, or scores, of one.
template <int W, typename T>
AERIE_INLINE void AttendFew(const AttentionArgs& args, const QueryBlock& block, int64_t rows,
                            AttentionScratch& scratch) {
  using V = Vector<W>;
  using Floats = typename V::Floats;
  const PagedRows& kv = args.kv;
  const int64_t padded = (rows + W - 1) / W * W;
  scratch.floats.assign(block.count * padded, kUnseen);
  for (const RowChunk& chunk : scratch.chunks) {
    const int64_t count = chunk.rows.end - chunk.rows.begin;
    const T* const keys = RowsAt<T>(kv.keys, kv.key_dim, kv, chunk.rows.begin);
    for (int64_t q = 0; q < block.count; ++q) {
      const float* const query = QueryAt(args, block.first + q);
      float* const own = scratch.floats.data() + q * padded + chunk.scores;
      int64_t r = 0;
      for (; r + 4 <= count; r += 4)
        DotTile<W, 4>(query, keys + r * kv.key_dim, kv.key_dim, args.scale, own + r);
      for (; r < count; ++r)
        DotTile<W, 1>(query, keys + r * kv.key_dim, kv.key_dim, args.scale, own + r);
      const SeenRows& seen = args.seen[(block.first + q) / args.group];
      if (SeesAll(seen, chunk.rows)) continue;
      bool sees[kMaxChunkRows];
      MarkSeen(seen, chunk.rows, sees);
      for (r = 0; r < count; ++r) {
        if (!sees[r]) own[r] = kUnseen;
      }
    }
  }
  for (int64_t q = 0; q < block.count; ++q) {
    float* const scores = scratch.floats.data() + q * padded;
    Floats most = V::All(kUnseen), sums = {};
    for (int64_t r = 0; r < padded; r += W) most = Larger(V::Load(scores + r), most);
    const float largest = Largest<W>(most);
    for (int64_t r = 0; r < padded; r += W) {
      const Floats weight = Exp<W>(V::Load(scores + r) - largest);
      V::Store(weight, scores + r);
      sums += weight;
    }
    float* const out = OutAt(args, block.first + q);
    std::fill(out, out + kv.value_dim, 0.0f);
    for (const RowChunk& chunk : scratch.chunks) {
      const T* const values = RowsAt<T>(kv.values, kv.value_dim, kv, chunk.rows.begin);
      Weigh<W>(scores + chunk.scores, values, kv.value_dim, chunk.rows.end - chunk.rows.begin, out);
    }
    const float share = 1.0f / Sum(sums);
    for (int32_t d = 0; d < kv.value_dim; ++d) out[d] *= share;
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
