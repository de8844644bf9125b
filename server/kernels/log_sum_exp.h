// The logarithm of a sum of exponentials: what turns scores into log-probabilities.
#pragma once

#include <cstdint>

#include "server/kernels/cpu_level.h"

namespace aerie {

struct ScoreSummary {
  bool finite = true;  // no score is NaN or infinite; else the rest means nothing
  float largest = 0.0f;
  double log_sum_exp = 0.0;
};

// Of `scores` [count], count >= 1. `level`: at most BestCpuLevel().
ScoreSummary Summarise(const float* scores, int64_t count, CpuLevel level = BestCpuLevel());

}  // namespace aerie
