// What is computed on a CUDA device: the arguments of each operation, which are its contract.
//
// All pointers lead to memory of the device. An operation has done nothing yet when it returns: it
// runs behind what the device was given before. Numbers between operations are float32 whatever
// weights and pages hold, and what comes out of one row does not depend on the other rows of the
// call, so a row has the same bits in any batch. One exception: products of more than kFewRows rows
// may be a library's, whose last digits depend on their number.
#pragma once

#include <cstddef>
#include <cstdint>

namespace aerie {

enum class DeviceElement : int32_t {
  kFloat32,
  kBFloat16,
  kInt8,
  kFp8,  // float8_e4m3fn: sign, 4 bits of exponent, 3 of fraction; no NaN
};
constexpr int64_t ElementBytes(DeviceElement element) {
  return element == DeviceElement::kFloat32 ? 4 : element == DeviceElement::kBFloat16 ? 2 : 1;
}

// [channels, stride] by output channel; what stands behind `inputs` is zero.
struct DeviceMatrix {
  const void* weights = nullptr;
  const float* scales = nullptr;  // [channels]; of kInt8 and kFp8 alone
  int64_t channels = 0, inputs = 0;
  int64_t stride = 0;  // in elements; a multiple of kStrideElements
  DeviceElement element = DeviceElement::kFloat32;
};
constexpr int64_t kStrideElements = 16;
constexpr int32_t kFewRows = 64;

enum class DeviceFinish : int32_t {
  kStore,
  kAdd,     // the residual
  kSwiGlu,  // channels 2i and 2i + 1 become silu(first) x second at i
};

// out[i] = finish(channels of the matrix x in[i]).
struct ProductOp {
  DeviceMatrix matrix;
  int64_t first_channel = 0, channels = 0;  // of the matrix; even with kSwiGlu
  int32_t rows = 0;
  const float* in = nullptr;  // row i: in + in_rows[i] * in_stride, or row i itself without in_rows
  int64_t in_stride = 0;
  const int32_t* in_rows = nullptr;
  const float* bias = nullptr;  // of the first of `channels` on, or none; not with kSwiGlu
  DeviceFinish finish = DeviceFinish::kStore;
  const float* residual = nullptr;  // likewise by residual_rows, as wide as `out`; may be `out`
  int64_t residual_stride = 0;
  const int32_t* residual_rows = nullptr;
  float* out = nullptr;
  int64_t out_stride = 0;
};

// out[i] = in[i] / rms(in[i]) x weight.
struct NormOp {
  const float* in = nullptr;
  int64_t in_stride = 0;
  const float* weight = nullptr;  // [width]
  float epsilon = 0.0f;
  int32_t rows = 0, width = 0;
  float* out = nullptr;  // may be `in`
  int64_t out_stride = 0;
};

// x = [norm of embedding ; norm of hidden], and the residual: the hidden state, or its norm.
struct PrepareOp {
  const float* embeddings = nullptr;  // [rows, width]
  // Of rows in front of `fused_rows`, and of those behind: [.., width] each.
  const float* fused = nullptr;
  const float* states = nullptr;
  int32_t fused_rows = 0;
  const float* embedding_norm = nullptr;
  const float* hidden_norm = nullptr;
  float epsilon = 0.0f;
  bool normed_residual = false;
  int32_t rows = 0, width = 0;
  float* x = nullptr;         // [rows, 2 x width]
  float* residual = nullptr;  // [rows, width]
};

// One layer of the page store: as server/model/kv_pages.h has it.
struct DevicePages {
  std::byte* store = nullptr;
  int64_t page_bytes = 0;
  int64_t keys_at = 0,
          values_at = 0;  // of the layer's first key head, in bytes from a page's start
  int32_t page_rows = 0, kv_heads = 0, head_dim = 0;
  DeviceElement element = DeviceElement::kFloat32;  // kFloat32 or kBFloat16
};
constexpr int32_t kMaxHeadDim = 512;

// Norms and rotates queries in place, and keys on their way into the pages; values go as they are.
struct TurnOp {
  DevicePages pages;
  int32_t heads = 0;
  int32_t rows = 0, chosen = 0;
  float* queries = nullptr;  // [chosen, query_stride]
  int64_t query_stride = 0;
  const int32_t* chosen_rows = nullptr;  // [chosen]: numbers of rows of the pass; null: 0, 1, ...
  const float* keys = nullptr;           // [rows, kv_stride], kv_heads x head_dim of it
  const float* values = nullptr;
  int64_t kv_stride = 0;
  const int32_t* write_page = nullptr;  // [rows]
  const int32_t* write_at = nullptr;    // [rows]: the row in its page
  const float* cos = nullptr;           // [rows, pairs]
  const float* sin = nullptr;
  int32_t pairs = 0;                  // 2 x pairs channels turn
  bool interleaved = false;           // channels 2i and 2i + 1 make a pair, else i and pairs + i
  const float* query_norm = nullptr;  // [head_dim], or none
  const float* key_norm = nullptr;
  float epsilon = 0.0f;
};

// What one row of queries sees: two ranges and single rows, none of them twice; row r lies in page
// table[first_page + r / page_rows].
struct DeviceSeen {
  int32_t early_begin = 0, early_end = 0, late_begin = 0, late_end = 0;
  int32_t first_single = 0, singles = 0;  // in `table`
  int32_t first_page = 0;                 // in `table`
};

// Rows of a sequence that one block looks at. Where they are cut depends on row indices alone.
constexpr int32_t kSplitRows = 512;

struct AttendOp {
  DevicePages pages;
  int32_t heads = 0, chosen = 0;
  float scale = 1.0f;
  const float* queries = nullptr;  // [chosen, query_stride]
  int64_t query_stride = 0;
  const DeviceSeen* seen = nullptr;  // [chosen]
  const int32_t* table = nullptr;
  int32_t splits = 1;         // x kSplitRows rows cover every row that is seen
  float* partials = nullptr;  // [chosen, heads, splits, head_dim + 2]; not used with one split
  float* out = nullptr;       // [chosen, heads x head_dim]
};

struct DeviceScore {
  float score;
  int32_t id;
};
// Of one row of scores. log_sum_exp = largest + log(sum).
struct DeviceRowSummary {
  float largest, sum;
  float probe;     // the score that was asked for
  int32_t finite;  // 0: a score is NaN or infinite, and the rest means nothing
};
// More are ranked by whoever asks.
constexpr int32_t kMaxRanked = 64;
// Scores that one block ranks.
constexpr int32_t kRankChunk = 4096;
constexpr int32_t RankChunks(int64_t count) {
  return static_cast<int32_t>((count + kRankChunk - 1) / kRankChunk);
}

struct RankOp {
  const float* scores = nullptr;  // [rows, count]
  int32_t rows = 0, count = 0;
  int32_t k = 1;                           // 1..min(count, kMaxRanked)
  const int32_t* probes = nullptr;         // [rows]: an id, or -1
  DeviceScore* candidates = nullptr;       // [rows, chunks, k]
  DeviceRowSummary* chunk_sums = nullptr;  // [rows, chunks]
  DeviceRowSummary* summaries = nullptr;   // [rows]
  DeviceScore* best = nullptr;             // [rows, k], best first; equal scores: lower id first
};

}  // namespace aerie
