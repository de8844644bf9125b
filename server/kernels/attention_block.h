// A block of queries, and where it finds what it needs. Private to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "server/kernels/attention.h"

namespace aerie {

// The score of a row that a query does not see.
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

}  // namespace aerie
