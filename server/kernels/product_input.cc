// Inputs in the form that weights ask for: 16-bit integers, or bfloat16.
#include <bit>
#include <limits>

#include "server/kernels/product.h"
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

// In the one form that a level which multiplies bfloat16 has.
AERIE_TARGET_AVX512 void Round(const float* rows, int64_t count, int64_t stride, int64_t inputs,
                               uint16_t* to, int64_t to_stride) {
  using V = Vector<kAvx512Width>;
  for (int64_t row = 0; row < count; ++row, rows += stride, to += to_stride) {
    int64_t i = 0;
    for (; i + kAvx512Width <= inputs; i += kAvx512Width)
      StoreBFloat16<kAvx512Width>(V::Load(rows + i), to + i);
    for (; i < inputs; ++i) to[i] = AsBFloat16(rows[i]);
    if (inputs % 2 != 0) to[inputs] = 0;
  }
}

// In bfloat16. An odd number of cache lines: the same input of many rows, which a tile reads
// together, would else lie in the same few places of the cache.
int64_t RoundedStride(int64_t inputs) { return ((inputs + 31) / 32 | 1) * 32; }

template <typename T>
T* Room(std::vector<T>& memory, int64_t count) {
  if (memory.size() < static_cast<size_t>(count)) memory.resize(count);
  return memory.data();
}

}  // namespace

void ProductInput::Set(const float* rows, int64_t count, int64_t stride, int64_t inputs,
                       WeightElement element, CpuLevel level) {
  count_ = count;
  inputs_ = inputs;
  stride_ = stride;
  element_ = element;
  floats_ = rows;
  is_rounded_ = element == WeightElement::kBFloat16 && level == CpuLevel::kAvx512Bf16;
  if (is_rounded_) {
    rounded_stride_ = RoundedStride(inputs);
    return Round(rows, count, stride, inputs, Room(rounded_, count * rounded_stride_),
                 rounded_stride_);
  }
  if (element != WeightElement::kInt8) return;
  int16_t* const integers = Room(integers_, count * ((inputs + 1) / 2 * 2));
  float* const scales = Room(scales_, count * ((inputs + kInputBlock - 1) / kInputBlock));
  switch (level) {
    case CpuLevel::kBaseline:
      return AllToIntegersBaseline(rows, count, stride, inputs, integers, scales);
    case CpuLevel::kAvx2:
      return AllToIntegersAvx2(rows, count, stride, inputs, integers, scales);
    case CpuLevel::kAvx512:
    case CpuLevel::kAvx512Vnni:
    case CpuLevel::kAvx512Bf16:
      return AllToIntegersAvx512(rows, count, stride, inputs, integers, scales);
  }
}

}  // namespace aerie
