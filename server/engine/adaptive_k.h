// How many tokens to draft next, for the most committed tokens per second.
//
// A round of k draft tokens commits 1 + a1 + a1 a2 + ... tokens, up to a product of k acceptance
// rates, and takes the time of its draft and of its verification. All of these are measured, by
// session and lately; the k with the largest quotient is chosen, and 0 when drafting does not pay.
//
// What a choice leaves out it cannot learn about: deeper positions, the verification of fewer
// tokens. So a bounded part of the time goes into rounds with another k (`KChoice::exploring`).
// Reads no clock and draws no random numbers: equal observations give equal choices.
#pragma once

#include <array>
#include <cstdint>

#include "absl/time/time.h"
#include "server/engine/cost_curve.h"
#include "server/engine/depth_acceptance.h"
#include "server/engine/draft_call.h"

namespace aerie {

class AdaptiveK {
 public:
  // 0..max_k for the coming round. As long as no verification was reported there is nothing to
  // weigh drafts against: the choice is max_k, its verify_time 0 and `exploring` set.
  KChoice Choose(int32_t max_k);

  // The target's verdict on a chain: 0 <= accepted <= proposed.
  void ObserveProposal(int32_t proposed, int32_t accepted);
  // A draft of k tokens: the passes of its extend rows, and the k - 1 steps behind them together.
  void ObserveDraft(int32_t k, absl::Duration extend, absl::Duration step);
  // A verification by the target of a chain of `draft_tokens`; 0: a step without a draft.
  void ObserveVerify(absl::Duration time, int32_t draft_tokens);

 private:
  // What the estimates say of the rounds of one k.
  struct Round {
    double tokens = 1;  // committed, bonus included
    double draft = 0;   // seconds
    double verify = 0;
    double time() const { return draft + verify; }
    double rate() const { return tokens / time(); }
  };
  // A k to look at beside the best one. Kinds have purses of their own, so that the dear ones are
  // neither forgotten nor paid for by the cheap ones.
  enum Probe { kNoDraft, kHalf, kOneDeeper, kTwiceAsDeep, kDeepest, kProbes };

  double DraftTime(int32_t k) const;
  static int32_t ProbedK(int probe, int32_t best, int32_t max_k);
  // The k of a probe whose purse pays for it now; `best` otherwise.
  int32_t Explore(const std::vector<Round>& rounds, int32_t best);

  DepthAcceptance acceptance_;
  RecentAverage extend_alone_;  // seconds; of rounds without a draft, which need no scores
  RecentAverage extend_;        // of rounds with one
  RecentAverage step_;          // one step
  CostCurve verify_;            // by draft tokens
  std::array<double, kProbes> purses_{};  // seconds
  int next_probe_ = 0;
  int rounds_since_probe_ = 0;
};

}  // namespace aerie
