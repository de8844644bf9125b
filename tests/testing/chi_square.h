// Pearson's chi-square test of counts against a known distribution.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace aerie {

// A false alarm of a right program is rarer than this. Seeds are fixed, so a test that passes once
// passes always; the bound says how surprising it would be that it does not.
inline constexpr double kFalseAlarm = 1e-6;

struct ChiSquare {
  double statistic = 0;
  int degrees = 0;     // of freedom
  double p_value = 0;  // chance of a statistic as large or larger when the distribution is right
  int64_t samples = 0;
};

// `probs` sums to 1. Cells that expect fewer than 5 samples are pooled; a sample where the
// probability is 0 makes the p-value 0.
ChiSquare TestAgainst(absl::Span<const int64_t> counts, absl::Span<const double> probs);

// Chance that a chi-square variable exceeds `statistic`.
double ChiSquareTail(double statistic, int degrees);

}  // namespace aerie
