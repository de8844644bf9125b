// The arithmetic of attention for vectors of W floats; attention.cc inlines it once for each
// CpuLevel. Private to this folder.
#pragma once

#include <algorithm>

#include "server/kernels/attention_few.h"
#include "server/kernels/attention_many.h"

namespace aerie {

// Queries come in blocks of W. Few of them would leave most of a vector empty that holds them side
// by side.
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
