#include "client/rejection.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace aerie {
namespace {

// How far the sum of a softmax in a narrow type may be from 1.
constexpr double kSumTolerance = 0.02;

double Sum(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

void Normalise(std::vector<double>* weights, double sum) {
  for (double& weight : *weights) weight /= sum;
}

// INVALID_ARGUMENT unless they are probabilities, of which `whose` tells.
absl::StatusOr<std::vector<double>> Probabilities(absl::Span<const float> values,
                                                  absl::string_view whose, int32_t node) {
  std::vector<double> probs(values.begin(), values.end());
  const double sum = Sum(probs);
  const bool negative = std::any_of(probs.begin(), probs.end(), [](double p) { return p < 0; });
  // NaN is no sum near 1 either.
  if (negative || !(std::abs(sum - 1) <= kSumTolerance)) {
    return absl::InvalidArgumentError(absl::StrCat(
        whose, " distribution behind node ", node, " sums to ", sum,
        negative ? " and has negative entries" : "",
        "; expected probabilities, which are 0 or more and sum to 1; apply the softmax to logits, "
        "and keep what the server sent as it is"));
  }
  Normalise(&probs, sum);
  return probs;
}

}  // namespace

Proposed Proposed::PointMasses() { return Proposed(); }

absl::StatusOr<Proposed> Proposed::From(const ProposalDistribution& distribution,
                                        int32_t vocab_size) {
  std::vector<int32_t> tokens = distribution.tokens;
  std::sort(tokens.begin(), tokens.end());
  const bool in_range = tokens.empty() || (tokens.front() >= 0 && tokens.back() < vocab_size);
  const bool distinct = std::adjacent_find(tokens.begin(), tokens.end()) == tokens.end();
  if (tokens.size() != distribution.probs.size() || !in_range || !distinct) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the proposal's distribution behind node ", distribution.node, " has ",
        distribution.tokens.size(), " tokens and ", distribution.probs.size(),
        " probabilities; expected one probability for each token, and distinct tokens in 0..",
        vocab_size - 1, "; keep what the server sent"));
  }
  Proposed proposed;
  proposed.distribution_ = &distribution;
  AERIE_ASSIGN_OR_RETURN(proposed.probs_,
                         Probabilities(distribution.probs, "the proposal's", distribution.node));
  return proposed;
}

size_t Proposed::PlaceOf(int32_t token) const {
  const auto& tokens = distribution_->tokens;
  return static_cast<size_t>(std::find(tokens.begin(), tokens.end(), token) - tokens.begin());
}

double Proposed::ProbOf(int32_t token) const {
  if (distribution_ == nullptr) return 1;
  const size_t place = PlaceOf(token);
  return place < probs_.size() ? probs_[place] : 0;
}

void Proposed::Remove(int32_t token) {
  if (distribution_ == nullptr) return;
  probs_[PlaceOf(token)] = 0;
  // Nothing is left when all were drawn; then no sibling follows.
  if (const double sum = Sum(probs_); sum > 0) Normalise(&probs_, sum);
}

absl::StatusOr<Wanted> Wanted::From(absl::Span<const float> row, int32_t node) {
  Wanted wanted;
  AERIE_ASSIGN_OR_RETURN(wanted.probs_, Probabilities(row, "the target's", node));
  return wanted;
}

bool Wanted::TakeOut(int32_t token, const Proposed& proposed) {
  if (proposed.distribution_ == nullptr) {
    probs_[static_cast<size_t>(token)] = 0;
  } else {
    for (size_t i = 0; i < proposed.probs_.size(); ++i) {
      double& prob = probs_[static_cast<size_t>(proposed.distribution_->tokens[i])];
      prob = std::max(prob - proposed.probs_[i], 0.0);
    }
  }
  const double left = Sum(probs_);
  if (!(left > 0)) return false;
  Normalise(&probs_, left);
  return true;
}

int32_t Wanted::Draw(double u) const {
  // The tokens lie side by side, each as wide as its probability.
  const double place = u * Sum(probs_);
  double reached = 0;
  size_t last = 0;
  for (size_t i = 0; i < probs_.size(); ++i) {
    if (probs_[i] == 0) continue;
    last = i;
    reached += probs_[i];
    if (place < reached) break;
  }
  return static_cast<int32_t>(last);  // also where u * sum rounded up to the sum
}

}  // namespace aerie
