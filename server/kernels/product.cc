#include "server/kernels/product.h"

#include "server/kernels/product_panels.h"

namespace aerie {
namespace {

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

void MultiplyPanels(const Product& product, int64_t first, int64_t end, CpuLevel level) {
  const PackedMatrix& matrix = *product.matrix;
  const ProductInput& input = *product.input;
  const PanelProduct plain = {
      .element = input.is_rounded() ? PanelElement::kRounded : ElementOf(matrix.element()),
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
      .x_rounded = input.rounded(),
      .x_rounded_stride = input.rounded_stride(),
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
    case CpuLevel::kAvx512Bf16:
      return MultiplyAvx512Bf16(plain, first, end);
  }
}

}  // namespace aerie
