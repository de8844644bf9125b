// The sum of products of two lists of floats.
#pragma once

#include <cstddef>

namespace aerie {

// Eight sums side by side: one alone would wait for every addition before the next.
inline float LaneDot(const float* a, const float* b, size_t count) {
  constexpr size_t kLanes = 8;
  float sums[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  double sum = 0.0;
  for (const float part : sums) sum += part;
  for (; i < count; ++i) sum += double{a[i]} * b[i];
  return static_cast<float>(sum);
}

}  // namespace aerie
