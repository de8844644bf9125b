// A target and a drafter reduced to numbers: how often drafts are kept at each depth and what
// everything takes. Made for AdaptiveK's tests; time and luck are simulated.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "server/engine/adaptive_k.h"

namespace aerie {

// What does not change for a while.
struct DraftLoad {
  std::string name;
  std::vector<double> rates;  // [d - 1]: of depth d, given that depth d - 1 was kept
  double extend = 0;          // milliseconds
  double step = 0;
  std::function<double(int32_t)> verify;  // milliseconds, of so many draft tokens

  double Tokens(int32_t k) const;  // that a round commits on average
  double Milliseconds(int32_t k) const;
  // Committed tokens per millisecond at a fixed k, on average.
  double Goodput(int32_t k) const { return Tokens(k) / Milliseconds(k); }
};

// The largest goodput of a fixed k, and which one has it.
struct FixedK {
  int32_t k = 0;
  double goodput = 0;
};
FixedK BestFixedK(const DraftLoad& load, int32_t max_k);

// A stretch of a session: so many tokens are committed under one load.
struct Stretch {
  DraftLoad load;
  int64_t tokens = 0;
};
FixedK BestFixedK(const std::vector<Stretch>& stretches, int32_t max_k);

// What sessions came to. Sums, so that short sessions add up without a bias: the mean of their
// goodputs would favour the lucky ones.
struct Outcome {
  int64_t tokens = 0;
  double milliseconds = 0;
  int64_t rounds = 0;
  int64_t exploring = 0;       // of the rounds
  int64_t drafted_tokens = 0;  // the k of all rounds

  double Goodput() const { return static_cast<double>(tokens) / milliseconds; }
  double MeanK() const { return static_cast<double>(drafted_tokens) / static_cast<double>(rounds); }
  double ExploringPart() const {
    return static_cast<double>(exploring) / static_cast<double>(rounds);
  }
};

// A session under AdaptiveK. Measured times scatter by 15 %, and every hundredth measurement is a
// hiccup of four times as long.
void RunSession(const std::vector<Stretch>& stretches, int32_t max_k, uint32_t seed,
                Outcome* outcome);

}  // namespace aerie
