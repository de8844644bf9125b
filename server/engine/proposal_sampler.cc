#include "server/engine/proposal_sampler.h"

#include <algorithm>
#include <cmath>

#include "common/check.h"
#include "server/engine/counter_random.h"

namespace aerie {
namespace {

// The entry that `u` falls on when the entries lie side by side in 0..1, each as wide as its
// weight. One weight is above 0.
size_t EntryAt(absl::Span<const double> weights, double u) {
  double sum = 0;
  for (const double weight : weights) sum += weight;
  const double place = u * sum;
  double reached = 0;
  size_t last = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    last = i;
    reached += weights[i];
    if (place < reached) return i;
  }
  return last;  // u * sum can round up to the sum
}

}  // namespace

std::vector<float> ProposalProbabilities(absl::Span<const ScoredToken> top, float temperature) {
  AERIE_CHECK(temperature > 0) << "temperature " << temperature;
  if (top.empty()) return {};
  // The largest exponent becomes 0, so no temperature makes the sum overflow or vanish.
  float best = top[0].log_prob;
  for (const ScoredToken& entry : top) best = std::max(best, entry.log_prob);
  AERIE_CHECK(std::isfinite(best)) << "log-probability " << best;
  std::vector<double> weights;
  weights.reserve(top.size());
  double sum = 0;
  for (const ScoredToken& entry : top) {
    weights.push_back(std::exp((static_cast<double>(entry.log_prob) - best) / temperature));
    sum += weights.back();
  }
  std::vector<float> probs;
  probs.reserve(top.size());
  for (const double weight : weights) probs.push_back(static_cast<float>(weight / sum));
  return probs;
}

std::vector<size_t> DrawWithoutReplacement(absl::Span<const float> probs, size_t count,
                                           DrawKey key) {
  std::vector<double> rest(probs.begin(), probs.end());
  size_t possible = 0;
  for (const double weight : rest) {
    AERIE_CHECK(weight >= 0) << "probability " << weight;
    if (weight > 0) ++possible;
  }
  std::vector<size_t> drawn;
  count = std::min(count, possible);
  drawn.reserve(count);
  while (drawn.size() < count) {
    const auto draw = static_cast<uint32_t>(drawn.size());
    drawn.push_back(EntryAt(rest, UniformAt(key.seed, key.position, key.node, draw)));
    rest[drawn.back()] = 0;
  }
  return drawn;
}

}  // namespace aerie
