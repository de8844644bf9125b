#include "server/engine/depth_acceptance.h"

#include <algorithm>

#include "common/check.h"

namespace aerie {
namespace {

// What is thought of the first depth before anything was seen, and how many observations the
// thought about a depth weighs as much as.
constexpr double kFirstGuess = 0.7;
constexpr double kGuessWeight = 2;
// An observation counts so much of what it counted when the next one of its depth comes: about
// the last 40 matter.
constexpr double kKeptByObservation = 1 - 1.0 / 40;
// And so much when a proposal comes that does not reach its depth.
constexpr double kKeptByTime = 1 - 1.0 / 1000;

}  // namespace

void DepthAcceptance::Observe(int32_t proposed, int32_t accepted) {
  AERIE_CHECK(accepted >= 0 && accepted <= proposed) << accepted << " of " << proposed;
  depths_.resize(std::max(depths_.size(), static_cast<size_t>(proposed)));
  const int32_t reached = std::min(proposed, accepted + 1);
  for (size_t i = 0; i < depths_.size(); ++i) {
    const auto above = static_cast<int32_t>(i);  // tokens above this depth
    const double kept = above < reached ? kKeptByObservation : kKeptByTime;
    depths_[i].reached *= kept;
    depths_[i].accepted *= kept;
    if (above < reached) depths_[i].reached += 1;
    if (above < accepted) depths_[i].accepted += 1;
  }
}

std::vector<double> DepthAcceptance::Rates(int32_t depths) const {
  std::vector<double> rates;
  double guess = kFirstGuess;
  for (size_t i = 0; i < static_cast<size_t>(depths); ++i) {
    const Depth depth = i < depths_.size() ? depths_[i] : Depth();
    guess = (depth.accepted + kGuessWeight * guess) / (depth.reached + kGuessWeight);
    rates.push_back(guess);
  }
  return rates;
}

}  // namespace aerie
