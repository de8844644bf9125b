// Products of rows with packed weights, and what follows each of them in the same pass over memory.
//
// Sums are float32 whatever the weights are. With int8 weights the inputs become 16-bit integers
// first, and sums of up to 256 products are exact; with bfloat16 weights they become bfloat16 where
// the processor multiplies that (kAvx512Bf16), which takes results that are next to 0 for 0. A
// row's result depends on the row alone: not on how many rows are multiplied together, on how
// panels are shared among threads, or on the order in which they come. It differs between
// CpuLevels by rounding.
#pragma once

#include <cstdint>
#include <vector>

#include "server/kernels/cpu_level.h"
#include "server/kernels/packed_matrix.h"

namespace aerie {

// Inputs that are summed up by themselves before they are added to the rest; a scale of 16-bit
// inputs holds for as many.
inline constexpr int64_t kInputBlock = 256;

// Rows of inputs in the form that weights of an element ask for. Memory is kept between uses.
class ProductInput {
 public:
  // `rows` [count, inputs], `stride` floats apart. They must stay as they are while the input is
  // used. A row that is not finite gives results that are NaN, of this row only.
  void Set(const float* rows, int64_t count, int64_t stride, int64_t inputs, WeightElement element,
           CpuLevel level = BestCpuLevel());

  int64_t rows() const { return count_; }
  int64_t inputs() const { return inputs_; }
  WeightElement element() const { return element_; }
  const float* floats() const { return floats_; }
  int64_t stride() const { return stride_; }
  // kInt8: [rows, inputs rounded up to 2].
  const int16_t* integers() const { return integers_.data(); }
  // kInt8: of each row and block of inputs.
  const float* scales() const { return scales_.data(); }
  // Whether the rows became bfloat16: [rows, rounded_stride()], an odd last pair filled with 0.
  bool is_rounded() const { return is_rounded_; }
  const uint16_t* rounded() const { return rounded_.data(); }
  int64_t rounded_stride() const { return rounded_stride_; }

 private:
  int64_t count_ = 0, inputs_ = 0, stride_ = 0, rounded_stride_ = 0;
  WeightElement element_ = WeightElement::kFloat32;
  const float* floats_ = nullptr;
  std::vector<int16_t> integers_;
  std::vector<float> scales_;
  bool is_rounded_ = false;
  std::vector<uint16_t> rounded_;
};

enum class Finish {
  kStore,
  kAdd,     // to what `out` holds
  kSwiGlu,  // of a matrix of pairs: silu(first) x second
};

struct Product {
  const PackedMatrix* matrix = nullptr;
  const ProductInput* input = nullptr;  // of the matrix's inputs and element
  const float* bias = nullptr;          // [channels], or none; not with kSwiGlu
  Finish finish = Finish::kStore;
  // [rows, channels from `first_channel` on], `out_stride` floats apart.
  float* out = nullptr;
  int64_t out_stride = 0;
  int64_t first_channel = 0;  // of the panels that are asked for, at most
};

// The channels of panels first .. end - 1. `level`: at most BestCpuLevel().
void MultiplyPanels(const Product& product, int64_t first, int64_t end,
                    CpuLevel level = BestCpuLevel());

}  // namespace aerie
