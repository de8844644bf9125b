// What the parts of a packed net share: the threads, memory that stays, and products over both.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "server/kernels/product.h"
#include "server/kernels/row_norm.h"
#include "server/kernels/thread_pool.h"

namespace aerie {

// Floats that are kept from one pass to the next and only grow. What was in them is lost.
class FloatBuffer {
 public:
  float* Get(int64_t count) {
    if (static_cast<int64_t>(floats_.size()) < count) floats_.resize(count);
    return floats_.data();
  }

 private:
  std::vector<float> floats_;
};

// A norm and its weights.
struct PackedNorm {
  std::vector<float> weight;
  float epsilon = 0.0f;

  bool exists() const { return !weight.empty(); }
  int64_t width() const { return static_cast<int64_t>(weight.size()); }
  // `rows` rows of width(), `in_stride` and `out_stride` floats apart.
  void Run(const float* in, int64_t in_stride, int64_t rows, float* out, int64_t out_stride) const {
    NormRows({.in = in,
              .in_stride = in_stride,
              .weight = weight.data(),
              .epsilon = epsilon,
              .rows = rows,
              .width = width(),
              .out = out,
              .out_stride = out_stride});
  }
};

// Runs products one after the other, or together, on the threads of a pool.
class ProductRunner {
 public:
  explicit ProductRunner(ThreadPool& pool) : pool_(pool) {}

  ThreadPool& pool() const { return pool_; }
  // Products that do not read what another of them writes: they share the threads.
  void Run(std::initializer_list<Product> products) const;

 private:
  ThreadPool& pool_;
};

}  // namespace aerie
