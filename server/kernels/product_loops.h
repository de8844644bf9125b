// The loops of a product over the instructions of `Isa`: what the files product_avx*.cc share.
// Private to these, which is why all of it has internal linkage.
//
// Every channel of every row is summed up in the same order, whatever tile it lies in: block by
// block of 256 inputs, within a block input by input. So results do not depend on how many rows
// come together.
#pragma once

#include "server/kernels/product_panels.h"
#include "server/kernels/product_tiles.h"
#include "server/kernels/vector.h"

namespace aerie {
namespace {

// Rows whose inputs are to stay in the second cache while all panels pass by.
constexpr int64_t kMostRows = 96;

// silu(first) x second.
template <int W>
AERIE_INLINE typename Vector<W>::Floats SwiGlu(typename Vector<W>::Floats first,
                                               typename Vector<W>::Floats second) {
  using Floats = typename Vector<W>::Floats;
  const Floats zero = {};
  // Of the larger side, so that nothing overflows.
  const Floats small = Exp<W>(first < zero ? first : -first);
  const Floats share = (first < zero ? small : zero + 1.0f) / (1.0f + small);
  return first * share * second;
}

// From totals [rows, totals_stride] of panels first .. to the output.
template <class Isa>
AERIE_INLINE void FinishPanel(const PanelProduct& p, int64_t panel, int64_t first_row, int64_t rows,
                              float* totals, int64_t totals_stride) {
  constexpr int W = Isa::kWidth;
  using V = Vector<W>;
  using Floats = typename V::Floats;
  const bool pairs = p.finish == PanelFinish::kSwiGlu;
  const int64_t width = pairs ? kLanes / 2 : kLanes;
  const int64_t channel = panel * width;
  const int64_t count = Least(width, p.channels - channel);
  for (int64_t row = 0; row < rows; ++row) {
    float* const values = totals + row * totals_stride;
    if (p.weight_scales != nullptr) {
      const float* const scales = p.weight_scales + panel * kLanes;
      for (int64_t i = 0; i < kLanes; i += W)
        V::Store(V::Load(values + i) * V::Load(scales + i), values + i);
    }
    if (pairs) {
      for (int64_t i = 0; i < kLanes / 2; i += W) {
        const Floats both = SwiGlu<W>(V::Load(values + i), V::Load(values + kLanes / 2 + i));
        V::Store(both, values + i);
      }
    } else if (p.bias != nullptr) {
      for (int64_t i = 0; i < count; ++i) values[i] += p.bias[channel + i];
    }
    float* const out = p.out + (first_row + row) * p.out_stride + channel - p.first_channel;
    if (p.finish == PanelFinish::kAdd) {
      for (int64_t i = 0; i < count; ++i) out[i] += values[i];
    } else if (count == width) {
      for (int64_t i = 0; i < width; i += W) V::Store(V::Load(values + i), out + i);
    } else {
      for (int64_t i = 0; i < count; ++i) out[i] = values[i];
    }
  }
}

// Rows first_row .. + rows of panels first .. first + kPanels - 1; rows <= kMostRows.
template <class Isa, PanelElement kElement, int kPanels>
void MultiplyGroup(const PanelProduct& p, int64_t first, int64_t first_row, int64_t rows) {
  constexpr int64_t kStride = kPanels * kLanes;
  alignas(64) float totals[(kPanels == 1 ? kMostRows : Isa::kFewRows) * kStride];
  for (int64_t i = 0; i < rows * kStride; ++i) totals[i] = 0.0f;
  // Of one input, or of half a pair.
  const int64_t input_bytes =
      p.panel_bytes / (p.inputs + (kElement != PanelElement::kFloat32 && p.inputs % 2 != 0));
  for (int64_t begin = 0; begin < p.inputs; begin += kBlock) {
    const int64_t count = Least(kBlock, p.inputs - begin);
    const std::byte* const weights = p.weights + first * p.panel_bytes + begin * input_bytes;
    for (int64_t row = 0; row < rows;) {
      const int64_t at = first_row + row;
      const TileInput in = {p.x + at * p.x_stride + begin,
                            p.x_stride,
                            p.x_integers + at * p.x_integers_stride + begin,
                            p.x_integers_stride,
                            p.x_scales + at * p.blocks + begin / kBlock,
                            p.blocks,
                            p.x_rounded + at * p.x_rounded_stride + begin,
                            p.x_rounded_stride};
      row += Isa::template RunTile<kElement, kPanels>(rows - row, weights, p.panel_bytes, in, count,
                                                      totals + row * kStride, kStride);
    }
  }
  for (int64_t i = 0; i < kPanels; ++i)
    FinishPanel<Isa>(p, first + i, first_row, rows, totals + i * kLanes, kStride);
}

template <class Isa, PanelElement kElement>
void MultiplyElement(const PanelProduct& p, int64_t first, int64_t end) {
  for (int64_t first_row = 0; first_row < p.rows; first_row += kMostRows) {
    const int64_t rows = Least(kMostRows, p.rows - first_row);
    int64_t panel = first;
    // Few rows leave registers for more panels at once, and their sums do not wait for each other.
    if (rows == 1) {
      for (; panel + Isa::kSinglePanels <= end; panel += Isa::kSinglePanels)
        MultiplyGroup<Isa, kElement, Isa::kSinglePanels>(p, panel, first_row, rows);
    }
    if (Isa::kFewRows > 1 && rows <= Isa::kFewRows) {
      for (; panel + 2 <= end; panel += 2)
        MultiplyGroup<Isa, kElement, 2>(p, panel, first_row, rows);
    }
    for (; panel < end; ++panel) MultiplyGroup<Isa, kElement, 1>(p, panel, first_row, rows);
  }
}

template <class Isa>
AERIE_INLINE void MultiplyAll(const PanelProduct& p, int64_t first, int64_t end) {
  switch (p.element) {
    case PanelElement::kFloat32:
      return MultiplyElement<Isa, PanelElement::kFloat32>(p, first, end);
    case PanelElement::kBFloat16:
      return MultiplyElement<Isa, PanelElement::kBFloat16>(p, first, end);
    case PanelElement::kInt8:
      return MultiplyElement<Isa, PanelElement::kInt8>(p, first, end);
    case PanelElement::kRounded:
      if constexpr (Isa::kMultipliesHalves) {
        return MultiplyElement<Isa, PanelElement::kRounded>(p, first, end);
      } else {
        return MultiplyReference(p, first, end);
      }
  }
}

}  // namespace
}  // namespace aerie
