// Attention of a block of queries over bfloat16 rows with products of bfloat16: as the processor's
// function takes it, in plain numbers and pointers (product_panels.h says why). Private to this
// folder.
//
// Queries and, behind the exponentials, weights are rounded to bfloat16; sums are float32. What
// comes out of a query depends on the rows that it sees and on where their chunks begin, not on the
// queries beside it.
#pragma once

#include <cstdint>

namespace aerie {

struct AttentionArgs;
struct AttentionScratch;

// Rows that lie together.
struct Bf16Chunk {
  const uint16_t* keys;    // [rows, key_dim]
  const uint16_t* values;  // [rows, value_dim]
  int64_t rows;            // at least 1
  int64_t scores;          // how many rows stand in the chunks before
};

struct Bf16Block {
  static constexpr int64_t kQueries = 16;  // at most

  const Bf16Chunk* chunks = nullptr;
  int64_t chunk_count = 0;
  int64_t key_dim = 0, value_dim = 0;
  int64_t count = 0;                    // of queries
  const float* queries[kQueries] = {};  // each [key_dim]
  float* outs[kQueries] = {};           // each [value_dim]
  float scale = 1.0f;
  // Memory of the block, all of it aligned to 64 bytes. Of each query:
  uint16_t* rounded = nullptr;  // [key_stride]: key_dim rounded up to 32
  int64_t key_stride = 0;
  float* scores = nullptr;  // [score_stride]: all rows, rounded up to 16
  int64_t score_stride = 0;
  float* sums = nullptr;  // [value_stride]: value_dim rounded up to 32
  int64_t value_stride = 0;
};

// Fills `scores`; behind the rows they stay as they are.
void ScoreBf16(const Bf16Block& block);
// From scores, of which minus infinity stands for rows that are not seen, to `outs`. The scores are
// lost.
void WeighBf16(const Bf16Block& block);

// Block by block. Of a level that multiplies bfloat16, where the pages hold that.
void AttendBf16(const AttentionArgs& args, AttentionScratch& scratch);

}  // namespace aerie
