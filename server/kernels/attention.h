// Attention of some queries over rows that lie in pages: scores, softmax and the weighted sum of
// values, for one key head of one sequence.
//
// Of which rows a query sees, only what is said counts: not the place of a row in its page, nor
// whether other rows of the page are seen. Pages without a seen row are not touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/kernels/attention_bf16.h"
#include "server/kernels/cpu_level.h"
#include "server/kernels/seen_rows.h"

namespace aerie {

enum class KvElement { kFloat32, kBFloat16 };

// Rows of one key head. Row r of the sequence is row r % page_rows of page pages[r / page_rows].
struct PagedRows {
  const std::byte* keys = nullptr;    // of page 0: [page_rows, key_dim], row-major
  const std::byte* values = nullptr;  // of page 0: [page_rows, value_dim], row-major
  int64_t page_bytes = 0;             // from one page to the next, keys and values alike
  const int32_t* pages = nullptr;     // page numbers; only those that hold seen rows are read
  int32_t page_rows = 0;
  int32_t key_dim = 0, value_dim = 0;
  KvElement element = KvElement::kFloat32;
};

struct AttentionArgs {
  PagedRows kv;
  // Query row r has `group` queries side by side, the query heads that share the key head; they see
  // the same rows: those of seen[r], at least one.
  int64_t rows = 0;
  int32_t group = 1;
  const SeenRows* seen = nullptr;  // [rows]
  const float* queries = nullptr;  // query row r: queries + r * query_stride, [group, key_dim]
  int64_t query_stride = 0;        // in floats
  float* out = nullptr;            // likewise, [group, value_dim]
  int64_t out_stride = 0;
  float scale = 1.0f;  // of the scores
};

// Memory that calls leave to each other. For one thread at a time.
struct AttentionScratch {
  std::vector<RowRange> ranges;
  std::vector<RowChunk> chunks;
  std::vector<Bf16Chunk> lying;
  std::vector<float> floats;
};

// Sums are float32, whatever the pages hold, and so are queries and weights, but for kAvx512Bf16
// over pages of bfloat16: there these are rounded to bfloat16 as well. Rows that are not finite
// make NaN of queries that see them, and may do so of others of the same sequence. Allocates by
// itself only what `scratch` lacks: some floats for each seen row. `level`: at most BestCpuLevel().
void AttendPages(const AttentionArgs& args, AttentionScratch& scratch,
                 CpuLevel level = BestCpuLevel());

}  // namespace aerie
