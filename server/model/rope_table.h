// The rotation of queries and keys. Cosines and sines are kept by row index and grow with the
// longest sequence seen, whatever the config's max_position_embeddings says.
//
// What a reader would get wrong: with kDynamic the angle depends on how long the sequence is when a
// row is computed. All rows of a pass turn by the length at its end; keys of earlier passes stay as
// they were written, also after a truncation. That is what transformers does with a KV cache, and
// it means that beyond the trained length a prompt in two passes differs from the same in one.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "absl/types/span.h"
#include "server/checkpoint/rope_spec.h"

namespace aerie {

// Cosines and sines of rows, [rows, 1, dims / 2] each, float32.
struct Turns {
  at::Tensor cos, sin;

  Turns Rows(const at::Tensor& rows) const {
    return {cos.index_select(0, rows), sin.index_select(0, rows)};
  }
};

class RopeTable {
 public:
  explicit RopeTable(const RopeSpec& rope) : rope_(rope) {}

  // `lengths`: of each row, the rows that its sequence has at the end of this pass.
  Turns At(absl::Span<const int64_t> positions, absl::Span<const int64_t> lengths);

  // Rotates the first `dims` channels of `x` [rows, heads, head_dim]. The result is float32.
  at::Tensor Rotate(const at::Tensor& x, const Turns& turns) const;

 private:
  // Makes sure of positions 0 .. positions-1.
  void Reserve(int64_t positions);
  Turns Dynamic(absl::Span<const int64_t> positions, absl::Span<const int64_t> lengths) const;
  Turns TurnsBy(const at::Tensor& angles) const;

  RopeSpec rope_;
  Turns table_;  // by position
};

}  // namespace aerie
