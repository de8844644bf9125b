// What a target worker does with a proposal, and how the outcome is counted. Pure functions and
// plain sums.
//
// Greedy verification compares each draft token with the target's own choice at the same place;
// what follows the first difference never counts. The token that the target adds itself, the
// *bonus*, is part of the accept length.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace aerie {

// What one target pass over root and chain gave.
struct ChainVerdict {
  int32_t accepted = 0;         // draft tokens kept, 0..chain length
  int32_t bonus = 0;            // the target's own token behind them
  std::vector<int32_t> tokens;  // accepted draft tokens and the bonus: what to commit
};

// `argmax[i]` is the target's choice behind the root (i = 0) or behind draft[i-1]; it has one entry
// more than `draft`. INVALID_ARGUMENT if it has not.
absl::StatusOr<ChainVerdict> VerifyGreedyChain(absl::Span<const int32_t> draft,
                                               absl::Span<const int32_t> argmax);

// Sums over proposals that went to verification. Rounds without a proposal are no drafts and are
// not added here.
class AcceptanceTally {
 public:
  // A chain. 1 <= proposed, 0 <= accepted <= proposed.
  void Add(int32_t proposed, int32_t accepted) { Add(proposed, proposed, accepted); }
  // A tree of `proposed` tokens on `depth` levels, of which a path of `accepted` was kept:
  // positions are levels. 1 <= depth <= proposed, 0 <= accepted <= depth.
  void Add(int32_t proposed, int32_t depth, int32_t accepted);
  void Merge(const AcceptanceTally& other);

  int64_t drafts() const { return drafts_; }
  int64_t draft_tokens() const { return draft_tokens_; }
  int64_t accepted_tokens() const { return accepted_tokens_; }
  // [i]: proposals in which position i was accepted, or was there at all.
  const std::vector<int64_t>& accepted_at() const { return accepted_at_; }
  const std::vector<int64_t>& proposed_at() const { return proposed_at_; }

  // 1 + accepted / drafts, bonus included; 0 without a draft.
  double MeanAcceptLength() const;
  // accepted / proposed, 0..1, where a tree counts with all its tokens; 0 without a draft.
  double AcceptanceRate() const;
  // accepted at i / proposed at i.
  std::vector<double> RateByPosition() const;
  // accepted at i / accepted at i-1; for i = 0 over proposals. 0 where the position was never
  // reached.
  std::vector<double> ConditionalRateByPosition() const;

  friend bool operator==(const AcceptanceTally&, const AcceptanceTally&) = default;

 private:
  int64_t drafts_ = 0, draft_tokens_ = 0, accepted_tokens_ = 0;
  std::vector<int64_t> accepted_at_, proposed_at_;
};

}  // namespace aerie
