#include "server/model/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace aerie {
namespace {

constexpr double kFullTurn = 2 * std::numbers::pi;

// theta grows so that the slowest pair turns as far as it did at the trained length.
double DynamicTheta(const RopeSpec& rope, int64_t length) {
  const double trained = rope.original_max_positions.value, factor = rope.factor.value;
  const double longest = std::max(static_cast<double>(length), trained);
  const double growth = factor * longest / trained - (factor - 1);
  const double dims = rope.dims.value;
  return rope.theta.value * std::pow(growth, dims / (dims - 2));
}

// Pairs that turn often within the trained length stay, those that turn rarely are slowed by
// `factor`, and those between are blended.
void BlendByWavelength(const RopeSpec& rope, std::vector<double>& frequencies) {
  const double low = rope.low_freq_factor.value, high = rope.high_freq_factor.value;
  for (double& frequency : frequencies) {
    const double turns = rope.original_max_positions.value * frequency / kFullTurn;
    const double stay = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    frequency = frequency * stay + frequency / rope.factor.value * (1 - stay);
  }
}

// The same with a ramp over the pairs' numbers.
void BlendByRamp(const RopeSpec& rope, std::vector<double>& frequencies) {
  const double dims = rope.dims.value;
  const auto pair_with = [&](double turns) {
    return dims * std::log(rope.original_max_positions.value / (turns * kFullTurn)) /
           (2 * std::log(rope.theta.value));
  };
  double first = pair_with(rope.beta_fast.value), last = pair_with(rope.beta_slow.value);
  if (rope.truncate.value) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, dims - 1);
  if (first == last) last += 0.001;  // a step instead of a ramp
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double slow = std::clamp((static_cast<double>(i) - first) / (last - first), 0.0, 1.0);
    frequencies[i] = frequencies[i] * (1 - slow) + frequencies[i] / rope.factor.value * slow;
  }
}

}  // namespace

std::vector<double> RopeFrequencies(const RopeSpec& rope, int64_t length) {
  const bool dynamic = rope.type.value == RopeType::kDynamic;
  const double theta = dynamic ? DynamicTheta(rope, length) : rope.theta.value;
  std::vector<double> frequencies(rope.dims.value / 2);
  for (size_t i = 0; i < frequencies.size(); ++i)
    frequencies[i] = std::pow(theta, -2.0 * static_cast<double>(i) / rope.dims.value);
  switch (rope.type.value) {
    case RopeType::kDefault:
    case RopeType::kDynamic:
      break;
    case RopeType::kLinear:
      for (double& frequency : frequencies) frequency /= rope.factor.value;
      break;
    case RopeType::kLlama3:
      BlendByWavelength(rope, frequencies);
      break;
    case RopeType::kYarn:
      BlendByRamp(rope, frequencies);
      break;
  }
  return frequencies;
}

}  // namespace aerie
