#include "server/kernels/product.h"

#include <bit>
#include <limits>

#include "server/kernels/product_panels.h"
#include "server/kernels/vector.h"

namespace aerie {
namespace {

// Integers of at most this size: 256 of their products with 127 stay below 2^31.
constexpr float kLargestInteger = 32767.0f;

// One block of one row; returns its scale.
template <int W>
AERIE_INLINE float ToIntegers(const float* from, int64_t count, int16_t* to) {
  using V = Vector<W>;
  using Floats = typename V::Floats;
  const int64_t whole = count / W * W;
  Floats most = {}, trouble = {};
  for (int64_t i = 0; i < whole; i += W) {
    const Floats part = V::Load(from + i);
    most = Larger(part < Floats{} ? -part : part, most);
    trouble += part - part;
  }
  float largest = Largest<W>(most), spread = Sum(trouble);
  for (int64_t i = whole; i < count; ++i) {
    const float size = from[i] < 0.0f ? -from[i] : from[i];
    largest = size > largest ? size : largest;
    spread += from[i] - from[i];
  }
  const bool finite = spread == 0.0f;
  // Of a block that is too small for it the factor is infinite, and the scale makes up for that: it
  // is next to 0.
  const float factor = finite && largest > 0.0f ? kLargestInteger / largest : 0.0f;
  constexpr float kRounder = 12582912.0f;  // see Exp()
  for (int64_t i = 0; i < count; ++i) {
    const float shifted = from[i] * factor + kRounder;
    to[i] =
        static_cast<int16_t>(std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRounder));
  }
  if (!finite) return std::numeric_limits<float>::quiet_NaN();
  return largest / kLargestInteger;
}

template <int W>
AERIE_INLINE void AllToIntegers(const float* rows, int64_t count, int64_t stride, int64_t inputs,
                                int16_t* to, float* scales) {
  const int64_t padded = (inputs + 1) / 2 * 2;
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t first = 0; first < inputs; first += kInputBlock) {
      const int64_t block = inputs - first < kInputBlock ? inputs - first : kInputBlock;
      *scales++ = ToIntegers<W>(rows + row * stride + first, block, to + row * padded + first);
    }
    if (padded > inputs) to[row * padded + inputs] = 0;
  }
}

void AllToIntegersBaseline(const float* rows, int64_t count, int64_t stride, int64_t inputs,
                           int16_t* to, float* scales) {
  AllToIntegers<kBaselineWidth>(rows, count, stride, inputs, to, scales);
}

AERIE_TARGET_AVX2 void AllToIntegersAvx2(const float* rows, int64_t count, int64_t stride,
                                         int64_t inputs, int16_t* to, float* scales) {
  AllToIntegers<kAvx2Width>(rows, count, stride, inputs, to, scales);
}

AERIE_TARGET_AVX512 void AllToIntegersAvx512(const float* rows, int64_t count, int64_t stride,
                                             int64_t inputs, int16_t* to, float* scales) {
  AllToIntegers<kAvx512Width>(rows, count, stride, inputs, to, scales);
}

PanelElement ElementOf(WeightElement element) {
  switch (element) {
    case WeightElement::kFloat32:
      return PanelElement::kFloat32;
    case WeightElement::kBFloat16:
      return PanelElement::kBFloat16;
    case WeightElement::kInt8:
      break;
  }
  return PanelElement::kInt8;
}

PanelFinish FinishOf(Finish finish) {
  switch (finish) {
    case Finish::kStore:
      return PanelFinish::kStore;
    case Finish::kAdd:
      return PanelFinish::kAdd;
    case Finish::kSwiGlu:
      break;
  }
  return PanelFinish::kSwiGlu;
}

}  // namespace

void ProductInput::Set(const float* rows, int64_t count, int64_t stride, int64_t inputs,
                       WeightElement element, CpuLevel level) {
  count_ = count;
  inputs_ = inputs;
  stride_ = stride;
  element_ = element;
  floats_ = rows;
  if (element != WeightElement::kInt8) return;
  const auto needed = static_cast<size_t>(count * ((inputs + 1) / 2 * 2));
  const auto scales = static_cast<size_t>(count * ((inputs + kInputBlock - 1) / kInputBlock));
  if (integers_.size() < needed) integers_.resize(needed);
  if (scales_.size() < scales) scales_.resize(scales);
  switch (level) {
    case CpuLevel::kBaseline:
      return AllToIntegersBaseline(rows, count, stride, inputs, integers_.data(), scales_.data());
    case CpuLevel::kAvx2:
      return AllToIntegersAvx2(rows, count, stride, inputs, integers_.data(), scales_.data());
    case CpuLevel::kAvx512:
    case CpuLevel::kAvx512Vnni:
      return AllToIntegersAvx512(rows, count, stride, inputs, integers_.data(), scales_.data());
  }
}

void MultiplyPanels(const Product& product, int64_t first, int64_t end, CpuLevel level) {
  const PackedMatrix& matrix = *product.matrix;
  const ProductInput& input = *product.input;
  const PanelProduct plain = {
      .element = ElementOf(matrix.element()),
      .finish = FinishOf(product.finish),
      .weights = matrix.data(),
      .panel_bytes = matrix.panel_bytes(),
      .weight_scales = matrix.scales(),
      .channels = matrix.channels(),
      .inputs = matrix.inputs(),
      .rows = input.rows(),
      .x = input.floats(),
      .x_stride = input.stride(),
      .x_integers = input.integers(),
      .x_integers_stride = (matrix.inputs() + 1) / 2 * 2,
      .x_scales = input.scales(),
      .blocks = (matrix.inputs() + kInputBlock - 1) / kInputBlock,
      .bias = product.bias,
      .out = product.out,
      .out_stride = product.out_stride,
      .first_channel = product.first_channel,
  };
  switch (level) {
    case CpuLevel::kBaseline:
      return MultiplyReference(plain, first, end);
    case CpuLevel::kAvx2:
      return MultiplyAvx2(plain, first, end);
    case CpuLevel::kAvx512:
      return MultiplyAvx512(plain, first, end);
    case CpuLevel::kAvx512Vnni:
      return MultiplyAvx512Vnni(plain, first, end);
  }
}

}  // namespace aerie
