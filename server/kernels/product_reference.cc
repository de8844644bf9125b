// The specification of a product: one channel of one row after the other, in plain loops. What
// processors without AVX2 run, too.
#include <bit>
#include <cmath>

#include "server/kernels/packed_matrix.h"
#include "server/kernels/product.h"
#include "server/kernels/product_panels.h"

namespace aerie {
namespace {

constexpr int64_t kHalf = kPanelChannels / 2;

float FloatOf(uint16_t bfloat16) { return std::bit_cast<float>(uint32_t{bfloat16} << 16); }

// The sum over one block of inputs.
float BlockSum(const PanelProduct& p, const std::byte* panel, int64_t lane, int64_t row,
               int64_t begin, int64_t end) {
  if (p.element == PanelElement::kInt8) {
    const auto* const weights = reinterpret_cast<const int8_t*>(panel) + lane * 2;
    int32_t sum = 0;
    for (int64_t i = begin; i < end; ++i) {
      sum += int32_t{weights[i / 2 * kPanelChannels * 2 + i % 2]} *
             p.x_integers[row * p.x_integers_stride + i];
    }
    return static_cast<float>(sum) * p.x_scales[row * p.blocks + begin / kInputBlock];
  }
  const float* const x = p.x + row * p.x_stride;
  float sum = 0.0f;
  if (p.element == PanelElement::kFloat32) {
    const auto* const weights = reinterpret_cast<const float*>(panel) + lane;
    for (int64_t i = begin; i < end; ++i) sum += weights[i * kPanelChannels] * x[i];
  } else {
    const auto* const weights = reinterpret_cast<const uint16_t*>(panel) + lane * 2;
    const uint16_t* const rounded = p.x_rounded + row * p.x_rounded_stride;
    for (int64_t i = begin; i < end; ++i) {
      const float input = p.element == PanelElement::kRounded ? FloatOf(rounded[i]) : x[i];
      sum += FloatOf(weights[i / 2 * kPanelChannels * 2 + i % 2]) * input;
    }
  }
  return sum;
}

float Channel(const PanelProduct& p, int64_t panel, int64_t lane, int64_t row) {
  float total = 0.0f;
  for (int64_t begin = 0; begin < p.inputs; begin += kInputBlock) {
    const int64_t end = p.inputs - begin < kInputBlock ? p.inputs : begin + kInputBlock;
    total += BlockSum(p, p.weights + panel * p.panel_bytes, lane, row, begin, end);
  }
  return p.weight_scales == nullptr ? total
                                    : total * p.weight_scales[panel * kPanelChannels + lane];
}

}  // namespace

void MultiplyReference(const PanelProduct& p, int64_t first, int64_t end) {
  const bool pairs = p.finish == PanelFinish::kSwiGlu;
  const int64_t width = pairs ? kHalf : kPanelChannels;
  for (int64_t row = 0; row < p.rows; ++row) {
    for (int64_t panel = first; panel < end; ++panel) {
      for (int64_t lane = 0; lane < width && panel * width + lane < p.channels; ++lane) {
        const int64_t channel = panel * width + lane;
        float value = Channel(p, panel, lane, row);
        if (pairs) {
          value *= Channel(p, panel, lane + kHalf, row) / (1.0f + std::exp(-value));
        } else if (p.bias != nullptr) {
          value += p.bias[channel];
        }
        float& out = p.out[row * p.out_stride + channel - p.first_channel];
        out = p.finish == PanelFinish::kAdd ? out + value : value;
      }
    }
  }
}

}  // namespace aerie
