// The innermost loops of a product: a tile of a few rows and a panel or a few, over one block of
// inputs. Private to the files product_avx*.cc, which is why all of it has internal linkage.
//
// Every channel of every row is summed up in the same order in all of them.
#pragma once

#include "server/kernels/product_panels.h"
#include "server/kernels/vector.h"

namespace aerie {
namespace {

constexpr int64_t kLanes = 32;   // channels of a panel
constexpr int64_t kBlock = 256;  // inputs that are summed up by themselves

// A tile of many rows takes so long with its weights that the processor stops reading ahead by
// itself. Asked to, it hides all of it: eight rows took 11.9 ms with 164 MB of bfloat16 instead of
// 15.4. What is asked for behind the last panel is not there, which does no harm.
constexpr int64_t kAhead = 4096;
template <int kRows>
constexpr bool kReadsAhead = kRows >= 6;

AERIE_INLINE int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

// Where a tile finds its inputs: those of its first row, at the block's first input.
struct TileInput {
  const float* x;
  int64_t x_stride;
  const int16_t* integers;
  int64_t integers_stride;
  const float* scales;  // of the block
  int64_t scales_stride;
  const uint16_t* rounded;
  int64_t rounded_stride;
};

// Of a tile, the sums of its rows and panels.
template <class Isa, int kRows, int kPanels>
using Sums = typename Isa::Floats[kRows][kPanels][Isa::kVectors];

// Adds one input's products; kHalf says which of its pair it is, where weights come in pairs.
template <class Isa, typename W, int kHalf, int kRows, int kPanels>
AERIE_INLINE void AddInput(const std::byte* weights, int64_t panel_bytes, const float* x,
                           int64_t x_stride, Sums<Isa, kRows, kPanels>& sums) {
  typename Isa::Floats inputs[kRows];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) inputs[r] = Isa::All(x[r * x_stride]);
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) {
    const auto* const own = reinterpret_cast<const W*>(weights + p * panel_bytes);
#pragma GCC unroll 4
    for (int v = 0; v < Isa::kVectors; ++v) {
      const typename Isa::Floats part = Isa::template Weights<kHalf>(own, v);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r)
        sums[r][p][v] = Isa::MultiplyAdd(part, inputs[r], sums[r][p][v]);
    }
  }
}

template <class Isa, int kRows, int kPanels>
AERIE_INLINE void AddToTotals(const Sums<Isa, kRows, kPanels>& sums, float* totals,
                              int64_t totals_stride) {
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < Isa::kVectors; ++v) {
        float* const to = totals + r * totals_stride + p * kLanes + v * Isa::kWidth;
        Isa::Store(Isa::Load(to) + sums[r][p][v], to);
      }
    }
  }
}

template <int kRows, int kPanels>
AERIE_INLINE void ReadAhead(const std::byte* weights, int64_t panel_bytes, int64_t bytes) {
  if constexpr (!kReadsAhead<kRows>) return;
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 2
    for (int64_t i = 0; i < bytes; i += 64)
      __builtin_prefetch(weights + p * panel_bytes + kAhead + i);
  }
}

// Adds the sums over `count` inputs to totals [kRows, totals_stride], for kPanels panels that lie
// `panel_bytes` apart.
template <class Isa, int kRows, int kPanels>
AERIE_INLINE void FloatTile(const std::byte* weights, int64_t panel_bytes, const TileInput& in,
                            int64_t count, float* totals, int64_t totals_stride) {
  Sums<Isa, kRows, kPanels> sums = {};
  for (int64_t i = 0; i < count; ++i, weights += 4 * kLanes) {
    AddInput<Isa, float, 0, kRows, kPanels>(weights, panel_bytes, in.x + i, in.x_stride, sums);
  }
  AddToTotals<Isa, kRows, kPanels>(sums, totals, totals_stride);
}

template <class Isa, int kRows, int kPanels>
AERIE_INLINE void BFloat16Tile(const std::byte* weights, int64_t panel_bytes, const TileInput& in,
                               int64_t count, float* totals, int64_t totals_stride) {
  Sums<Isa, kRows, kPanels> sums = {};
  const float* x = in.x;
  for (int64_t i = 0; i + 2 <= count; i += 2, x += 2, weights += 4 * kLanes) {
    ReadAhead<kRows, kPanels>(weights, panel_bytes, 4 * kLanes);
    AddInput<Isa, uint16_t, 0, kRows, kPanels>(weights, panel_bytes, x, in.x_stride, sums);
    AddInput<Isa, uint16_t, 1, kRows, kPanels>(weights, panel_bytes, x + 1, in.x_stride, sums);
  }
  if (count % 2 != 0)
    AddInput<Isa, uint16_t, 0, kRows, kPanels>(weights, panel_bytes, x, in.x_stride, sums);
  AddToTotals<Isa, kRows, kPanels>(sums, totals, totals_stride);
}

// Pairs of weights with pairs of inputs.
template <class Isa, int kRows, int kPanels>
AERIE_INLINE void RoundedTile(const std::byte* weights, int64_t panel_bytes, const TileInput& in,
                              int64_t count, float* totals, int64_t totals_stride) {
  Sums<Isa, kRows, kPanels> sums = {};
  const uint16_t* x = in.rounded;
  for (int64_t i = 0; i < count; i += 2, x += 2, weights += 4 * kLanes) {
    ReadAhead<kRows, kPanels>(weights, panel_bytes, 4 * kLanes);
    typename Isa::Halves inputs[kRows];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) inputs[r] = Isa::AllHalves(x + r * in.rounded_stride);
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < Isa::kVectors; ++v) {
        const typename Isa::Halves part = Isa::LoadHalves(weights + p * panel_bytes, v);
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r)
          sums[r][p][v] = Isa::MultiplyAddHalves(part, inputs[r], sums[r][p][v]);
      }
    }
  }
  AddToTotals<Isa, kRows, kPanels>(sums, totals, totals_stride);
}

template <class Isa, int kRows, int kPanels>
AERIE_INLINE void IntegerTile(const std::byte* weights, int64_t panel_bytes, const TileInput& in,
                              int64_t count, float* totals, int64_t totals_stride) {
  using Integers = typename Isa::Integers;
  constexpr int kVectors = Isa::kVectors;
  Integers sums[kRows][kPanels][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][p][v] = Isa::NoIntegers();
    }
  }
  for (int64_t i = 0; i < count; i += 2, weights += 2 * kLanes) {
    ReadAhead<kRows, kPanels>(weights, panel_bytes, 2 * kLanes);
    Integers inputs[kRows];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
      inputs[r] = Isa::AllPairs(in.integers + r * in.integers_stride + i);
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const Integers part = Isa::Widen(weights + p * panel_bytes, v);
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r)
          sums[r][p][v] = Isa::MultiplyAddPairs(part, inputs[r], sums[r][p][v]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    const typename Isa::Floats scale = Isa::All(in.scales[r * in.scales_stride]);
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        float* const to = totals + r * totals_stride + p * kLanes + v * Isa::kWidth;
        Isa::Store(Isa::MultiplyAdd(Isa::ToFloats(sums[r][p][v]), scale, Isa::Load(to)), to);
      }
    }
  }
}

template <class Isa, PanelElement kElement, int kRows, int kPanels>
__attribute__((noinline)) void Tile(const std::byte* panel, int64_t panel_bytes,
                                    const TileInput& in, int64_t count, float* totals,
                                    int64_t totals_stride) {
  if constexpr (kElement == PanelElement::kInt8) {
    IntegerTile<Isa, kRows, kPanels>(panel, panel_bytes, in, count, totals, totals_stride);
  } else if constexpr (kElement == PanelElement::kRounded) {
    RoundedTile<Isa, kRows, kPanels>(panel, panel_bytes, in, count, totals, totals_stride);
  } else if constexpr (kElement == PanelElement::kBFloat16) {
    BFloat16Tile<Isa, kRows, kPanels>(panel, panel_bytes, in, count, totals, totals_stride);
  } else {
    FloatTile<Isa, kRows, kPanels>(panel, panel_bytes, in, count, totals, totals_stride);
  }
}

}  // namespace
}  // namespace aerie
