#include "server/kernels/log_sum_exp.h"

#include <algorithm>
#include <cmath>

#include "server/kernels/vector.h"

namespace aerie {
namespace {

// Vectors whose sum is kept in float32 before it is added in float64: the error stays below that of
// one exponential.
constexpr int64_t kRun = 32;

template <int W>
AERIE_INLINE ScoreSummary SummariseWith(const float* scores, int64_t count) {
  using V = Vector<W>;
  using Floats = typename V::Floats;
  const int64_t whole = count / W * W;
  ScoreSummary summary;
  // A difference with itself is 0 for numbers, and NaN, which spreads, for all else.
  Floats most = V::All(scores[0]), trouble = {};
  for (int64_t i = 0; i < whole; i += W) {
    const Floats part = V::Load(scores + i);
    most = Larger(part, most);
    trouble += part - part;
  }
  float spread = Sum(trouble);
  summary.largest = Largest<W>(most);
  for (int64_t i = whole; i < count; ++i) {
    summary.largest = std::max(summary.largest, scores[i]);
    spread += scores[i] - scores[i];
  }
  summary.finite = spread == 0.0f;
  if (!summary.finite) return summary;

  double total = 0.0;
  for (int64_t i = 0; i < whole;) {
    const int64_t end = std::min(whole, i + kRun * W);
    Floats sum = {};
    for (; i < end; i += W) sum += Exp<W>(V::Load(scores + i) - summary.largest);
    total += Sum(sum);
  }
  for (int64_t i = whole; i < count; ++i) total += std::exp(scores[i] - summary.largest);
  summary.log_sum_exp = summary.largest + std::log(total);
  return summary;
}

ScoreSummary SummariseBaseline(const float* scores, int64_t count) {
  return SummariseWith<kBaselineWidth>(scores, count);
}

AERIE_TARGET_AVX2 ScoreSummary SummariseAvx2(const float* scores, int64_t count) {
  return SummariseWith<kAvx2Width>(scores, count);
}

AERIE_TARGET_AVX512 ScoreSummary SummariseAvx512(const float* scores, int64_t count) {
  return SummariseWith<kAvx512Width>(scores, count);
}

}  // namespace

ScoreSummary Summarise(const float* scores, int64_t count, CpuLevel level) {
  switch (level) {
    case CpuLevel::kBaseline:
      break;
    case CpuLevel::kAvx2:
      return SummariseAvx2(scores, count);
    case CpuLevel::kAvx512:
    case CpuLevel::kAvx512Vnni:
    case CpuLevel::kAvx512Bf16:
      return SummariseAvx512(scores, count);
  }
  return SummariseBaseline(scores, count);
}

}  // namespace aerie
