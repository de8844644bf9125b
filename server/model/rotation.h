// The rotation of queries and keys. Cosines and sines are computed for the positions of a pass and
// not kept: a sequence may stand anywhere, whatever the config's max_position_embeddings says.
//
// What a reader would get wrong: with kDynamic the angle depends on how long the sequence is when a
// row is computed. All extend rows of a pass turn by the length at its end, draft rows by that of
// their own path; keys of earlier passes stay as they were written. That is what transformers does
// with a KV cache, and it means that beyond the trained length a prompt in two passes differs from
// the same in one.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

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

// Immutable.
class Rotation {
 public:
  explicit Rotation(const RopeSpec& rope);

  // `lengths`: of each row, the rows that its sequence has at the end of this pass.
  Turns At(absl::Span<const int64_t> positions, absl::Span<const int64_t> lengths) const;

  // Rotates the first `dims` channels of `x` [rows, heads, head_dim]. The result is float32.
  at::Tensor Rotate(const at::Tensor& x, const Turns& turns) const;

  // The same without tensors. Cosines and sines of one row's pairs, [pairs()] each.
  int64_t pairs() const { return rope_.dims.value / 2; }
  void FillTurns(int64_t position, int64_t length, float* cos, float* sin) const;
  // Of one head, in place.
  void RotateHead(float* head, const float* cos, const float* sin) const;

 private:
  RopeSpec rope_;
  std::vector<double> frequencies_;  // but for kDynamic
};

}  // namespace aerie
