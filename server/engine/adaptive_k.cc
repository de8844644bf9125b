#include "server/engine/adaptive_k.h"

#include <algorithm>
#include <vector>

#include "common/check.h"

namespace aerie {
namespace {

// The part of the time that each kind of probe may cost beyond what the best k would have taken for
// the same tokens.
constexpr double kPart = 0.003;
// Rounds from one probe to the next, however cheap it looks.
constexpr int kLeastRoundsBetweenProbes = 5;

}  // namespace

KChoice AdaptiveK::Choose(int32_t max_k) {
  AERIE_CHECK(max_k >= 0) << "max_k " << max_k;
  std::vector<Round> rounds(static_cast<size_t>(max_k) + 1);
  const std::vector<double> rates = acceptance_.Rates(max_k);
  double chance = 1;
  for (int32_t k = 0; k <= max_k; ++k) {
    Round& round = rounds[static_cast<size_t>(k)];
    if (k > 0) {
      chance *= rates[static_cast<size_t>(k) - 1];
      round.tokens = rounds[static_cast<size_t>(k) - 1].tokens + chance;
    }
    round.draft = DraftTime(k);
    round.verify = verify_.places() > 0 ? verify_.At(k) : 0;
  }

  int32_t k = 0;
  bool exploring = false;
  if (verify_.places() < 2 || (max_k >= 2 && !step_.known())) {
    // One point tells no slope: look at both ends first.
    k = verify_.places() > 0 && !verify_.Measured(0) ? 0 : max_k;
    exploring = max_k > 0;
  } else {
    const auto best =
        std::max_element(rounds.begin(), rounds.end(),
                         [](const Round& a, const Round& b) { return a.rate() < b.rate(); });
    const auto best_k = static_cast<int32_t>(best - rounds.begin());
    k = Explore(rounds, best_k);
    exploring = k != best_k;
  }
  const Round& round = rounds[static_cast<size_t>(k)];
  return {.k = k,
          .expected_tokens = static_cast<float>(round.tokens),
          .draft_time = absl::Seconds(round.draft),
          .verify_time = absl::Seconds(round.verify),
          .exploring = exploring};
}

int32_t AdaptiveK::ProbedK(int probe, int32_t best, int32_t max_k) {
  switch (probe) {
    case kNoDraft:
      return 0;
    case kHalf:
      return best / 2;
    case kOneDeeper:
      return std::min(best + 1, max_k);
    case kTwiceAsDeep:
      return std::min(2 * best + 2, max_k);
    default:
      return max_k;
  }
}

int32_t AdaptiveK::Explore(const std::vector<Round>& rounds, int32_t best) {
  const auto max_k = static_cast<int32_t>(rounds.size()) - 1;
  const Round& best_round = rounds[static_cast<size_t>(best)];
  // A purse holds a round at most, or what its probe costs: no stretch of good luck is answered by
  // a burst of probes.
  const auto cost = [&](int probe) {
    const Round& round = rounds[static_cast<size_t>(ProbedK(probe, best, max_k))];
    return std::max(0.0, round.time() - round.tokens / best_round.rate());
  };
  for (int probe = 0; probe < kProbes; ++probe) {
    double& purse = purses_[static_cast<size_t>(probe)];
    purse = std::min(purse + kPart * best_round.time(), std::max(cost(probe), best_round.time()));
  }
  if (++rounds_since_probe_ < kLeastRoundsBetweenProbes) return best;
  for (int turn = 0; turn < kProbes; ++turn) {
    const int probe = (next_probe_ + turn) % kProbes;
    const int32_t k = ProbedK(probe, best, max_k);
    double& purse = purses_[static_cast<size_t>(probe)];
    if (k == best || purse < cost(probe)) continue;
    purse -= cost(probe);
    next_probe_ = (probe + 1) % kProbes;
    rounds_since_probe_ = 0;
    return k;
  }
  return best;
}

double AdaptiveK::DraftTime(int32_t k) const {
  const RecentAverage& first = k == 0 ? extend_alone_ : extend_;
  const RecentAverage& other = k == 0 ? extend_ : extend_alone_;
  const double extend = first.known() ? first.value() : other.value();
  return extend + std::max(k - 1, 0) * step_.value();
}

void AdaptiveK::ObserveProposal(int32_t proposed, int32_t accepted) {
  acceptance_.Observe(proposed, accepted);
}

void AdaptiveK::ObserveDraft(int32_t k, absl::Duration extend, absl::Duration step) {
  AERIE_CHECK(k >= 0) << "k " << k;
  (k == 0 ? extend_alone_ : extend_).Add(absl::ToDoubleSeconds(extend));
  if (k >= 2) step_.Add(absl::ToDoubleSeconds(step) / (k - 1));
}

void AdaptiveK::ObserveVerify(absl::Duration time, int32_t draft_tokens) {
  verify_.Observe(draft_tokens, absl::ToDoubleSeconds(time));
}

}  // namespace aerie
