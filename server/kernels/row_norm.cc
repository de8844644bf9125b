#include "server/kernels/row_norm.h"

#include <cmath>

#include "server/kernels/vector.h"

namespace aerie {
namespace {

template <int W>
AERIE_INLINE void NormWith(const RowNormArgs& args) {
  using V = Vector<W>;
  const int64_t whole = args.width / W * W;
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* const in = args.in + row * args.in_stride;
    float* const out = args.out + row * args.out_stride;
    typename V::Floats sums = {};
    for (int64_t i = 0; i < whole; i += W) sums += V::Load(in + i) * V::Load(in + i);
    float sum = Sum(sums);
    for (int64_t i = whole; i < args.width; ++i) sum += in[i] * in[i];
    const float scale = 1.0f / std::sqrt(sum / static_cast<float>(args.width) + args.epsilon);
    for (int64_t i = 0; i < whole; i += W)
      V::Store(V::Load(in + i) * scale * V::Load(args.weight + i), out + i);
    for (int64_t i = whole; i < args.width; ++i) out[i] = in[i] * scale * args.weight[i];
  }
}

void NormBaseline(const RowNormArgs& args) { NormWith<kBaselineWidth>(args); }
AERIE_TARGET_AVX2 void NormAvx2(const RowNormArgs& args) { NormWith<kAvx2Width>(args); }
AERIE_TARGET_AVX512 void NormAvx512(const RowNormArgs& args) { NormWith<kAvx512Width>(args); }

}  // namespace

void NormRows(const RowNormArgs& args, CpuLevel level) {
  switch (level) {
    case CpuLevel::kBaseline:
      return NormBaseline(args);
    case CpuLevel::kAvx2:
      return NormAvx2(args);
    case CpuLevel::kAvx512:
    case CpuLevel::kAvx512Vnni:
    case CpuLevel::kAvx512Bf16:
      return NormAvx512(args);
  }
}

}  // namespace aerie
