// Cosines and sines of the rotation, by row index. Grows with the longest sequence seen, whatever
// the config's max_position_embeddings says.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace aerie {

class RopeTable {
 public:
  // inv_freq_i = theta^(-2i / head_dim), i < head_dim / 2.
  RopeTable(double theta, int64_t head_dim) : theta_(theta), half_(head_dim / 2) {}

  // Makes sure of positions 0 .. positions-1.
  void Reserve(int64_t positions);

  // Rotates `x` [rows, heads, head_dim] to `positions` [rows]; channel i is paired with channel i +
  // head_dim/2. The result is float32.
  at::Tensor Rotate(const at::Tensor& x, const at::Tensor& positions) const;

 private:
  double theta_;
  int64_t half_;
  at::Tensor cos_, sin_;  // [capacity, half], float32
};

}  // namespace aerie
