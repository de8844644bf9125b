// Blocks of queries for products of bfloat16: which rows they see, and the memory for it.
#include "server/kernels/attention_bf16.h"

#include <algorithm>
#include <cstdint>

#include "server/kernels/attention_block.h"

#if defined(__x86_64__)

namespace aerie {
namespace {

int64_t RoundUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

// Memory for the block's numbers, in cache lines.
void GiveMemory(Bf16Block& block, AttentionScratch& scratch) {
  constexpr int64_t kLine = 16;  // floats
  const int64_t rounded = block.count * block.key_stride / 2;
  const int64_t scores = block.count * block.score_stride, sums = block.count * block.value_stride;
  const auto needed = static_cast<size_t>(rounded + scores + sums + kLine);
  if (scratch.floats.size() < needed) scratch.floats.resize(needed);
  const auto at = reinterpret_cast<uintptr_t>(scratch.floats.data());
  float* const start = scratch.floats.data() + (RoundUp(at, 64) - at) / sizeof(float);
  block.rounded = reinterpret_cast<uint16_t*>(start);
  block.scores = start + rounded;
  block.sums = block.scores + scores;
}

// Takes the scores of rows that a query does not see.
void DropUnseen(const AttentionArgs& args, const QueryBlock& queries, const RowChunk& chunk,
                const Bf16Block& block) {
  const int64_t first_row = queries.FirstRow(args);
  for (int64_t row = first_row; row < first_row + queries.Rows(args); ++row) {
    if (SeesAll(args.seen[row], chunk.rows)) continue;
    bool sees[kMaxChunkRows];
    MarkSeen(args.seen[row], chunk.rows, sees);
    const int64_t begin = std::max(row * args.group, queries.first);
    const int64_t end = std::min((row + 1) * args.group, queries.first + queries.count);
    for (int64_t q = begin; q < end; ++q) {
      float* const scores = block.scores + (q - queries.first) * block.score_stride + chunk.scores;
      for (int64_t r = 0; r < chunk.rows.end - chunk.rows.begin; ++r) {
        if (!sees[r]) scores[r] = kUnseen;
      }
    }
  }
}

}  // namespace

void AttendBf16(const AttentionArgs& args, AttentionScratch& scratch) {
  const PagedRows& kv = args.kv;
  const int64_t all = args.rows * args.group;
  for (int64_t first = 0; first < all; first += Bf16Block::kQueries) {
    const QueryBlock queries{first, std::min(Bf16Block::kQueries, all - first)};
    const int64_t rows = CutIntoChunks(args.seen + queries.FirstRow(args), queries.Rows(args),
                                       kv.page_rows, scratch.ranges, scratch.chunks);
    scratch.lying.clear();
    for (const RowChunk& chunk : scratch.chunks) {
      scratch.lying.push_back({RowsAt<uint16_t>(kv.keys, kv.key_dim, kv, chunk.rows.begin),
                               RowsAt<uint16_t>(kv.values, kv.value_dim, kv, chunk.rows.begin),
                               chunk.rows.end - chunk.rows.begin, chunk.scores});
    }
    Bf16Block block;
    block.chunks = scratch.lying.data();
    block.chunk_count = static_cast<int64_t>(scratch.lying.size());
    block.key_dim = kv.key_dim;
    block.value_dim = kv.value_dim;
    block.count = queries.count;
    block.scale = args.scale;
    block.key_stride = RoundUp(kv.key_dim, 32);
    block.score_stride = RoundUp(rows, 16);
    block.value_stride = RoundUp(kv.value_dim, 32);
    GiveMemory(block, scratch);
    for (int64_t q = 0; q < queries.count; ++q) {
      block.queries[q] = QueryAt(args, first + q);
      block.outs[q] = OutAt(args, first + q);
      std::fill(block.scores + q * block.score_stride + rows,
                block.scores + (q + 1) * block.score_stride, kUnseen);
    }
    ScoreBf16(block);
    for (const RowChunk& chunk : scratch.chunks) DropUnseen(args, queries, chunk, block);
    WeighBf16(block);
  }
}

}  // namespace aerie

#endif  // else no level multiplies bfloat16
