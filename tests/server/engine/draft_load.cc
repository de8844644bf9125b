#include "tests/server/engine/draft_load.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace aerie {
namespace {

constexpr double kScatter = 0.15;
constexpr double kHiccupChance = 0.01;
constexpr double kHiccup = 4;

// The standard library's distributions differ between implementations; these do not.
class Luck {
 public:
  explicit Luck(uint32_t seed) : random_(seed) {}

  double Uniform() { return random_() / 0x1p32; }

  // Has the mean 1.
  double Noise() {
    const double radius = std::sqrt(-2 * std::log(1 - Uniform()));
    const double normal = radius * std::cos(2 * std::numbers::pi * Uniform());
    const double usual = std::exp(kScatter * normal - kScatter * kScatter / 2);
    return usual * (Uniform() < kHiccupChance ? kHiccup : 1) / (1 + kHiccupChance * (kHiccup - 1));
  }

 private:
  std::mt19937 random_;
};

double RateAt(const DraftLoad& load, int32_t depth) {
  return load.rates[std::min(static_cast<size_t>(depth), load.rates.size()) - 1];
}

}  // namespace

double DraftLoad::Tokens(int32_t k) const {
  double tokens = 1, chance = 1;
  for (int32_t depth = 1; depth <= k; ++depth) tokens += chance *= RateAt(*this, depth);
  return tokens;
}

double DraftLoad::Milliseconds(int32_t k) const {
  return extend + std::max(k - 1, 0) * step + verify(k);
}

FixedK BestFixedK(const DraftLoad& load, int32_t max_k) {
  return BestFixedK(std::vector<Stretch>{{load, 1}}, max_k);
}

FixedK BestFixedK(const std::vector<Stretch>& stretches, int32_t max_k) {
  FixedK best;
  for (int32_t k = 0; k <= max_k; ++k) {
    double tokens = 0, milliseconds = 0;
    for (const Stretch& stretch : stretches) {
      tokens += static_cast<double>(stretch.tokens);
      milliseconds += static_cast<double>(stretch.tokens) / stretch.load.Goodput(k);
    }
    if (tokens / milliseconds > best.goodput) best = {k, tokens / milliseconds};
  }
  return best;
}

void RunSession(const std::vector<Stretch>& stretches, int32_t max_k, uint32_t seed,
                Outcome* outcome) {
  Luck luck(seed);
  AdaptiveK adaptive;
  for (const Stretch& stretch : stretches) {
    const DraftLoad& load = stretch.load;
    for (int64_t committed = 0; committed < stretch.tokens;) {
      const KChoice choice = adaptive.Choose(max_k);
      const int32_t k = choice.k;
      const double extend = load.extend * luck.Noise();
      const double steps = std::max(k - 1, 0) * load.step * luck.Noise();
      const double verify = load.verify(k) * luck.Noise();
      int32_t accepted = 0;
      while (accepted < k && luck.Uniform() < RateAt(load, accepted + 1)) ++accepted;
      adaptive.ObserveDraft(k, absl::Milliseconds(extend), absl::Milliseconds(steps));
      adaptive.ObserveVerify(absl::Milliseconds(verify), k);
      if (k > 0) adaptive.ObserveProposal(k, accepted);
      committed += accepted + 1;
      outcome->tokens += accepted + 1;
      outcome->milliseconds += extend + steps + verify;
      ++outcome->rounds;
      outcome->exploring += choice.exploring ? 1 : 0;
      outcome->drafted_tokens += k;
    }
  }
}

}  // namespace aerie
