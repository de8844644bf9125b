// One node of a proposal under rejection sampling: what the target wants behind it, and what the
// drafter drew its children from.
//
// All is kept in doubles that sum to 1, so that a softmax in a narrow type does not shift the
// result.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/draft_tree.h"

namespace aerie {

// The children's distribution, less the children that were rejected.
class Proposed {
 public:
  // All probability on whichever token is asked for: a greedy proposal, whose q is one point for
  // each sibling.
  static Proposed PointMasses();
  // INVALID_ARGUMENT: no distribution over the vocabulary. Refers to it.
  static absl::StatusOr<Proposed> From(const ProposalDistribution& distribution,
                                       int32_t vocab_size);

  // 0: it cannot have been drawn.
  double ProbOf(int32_t token) const;
  // Siblings are drawn without replacement: the rest is renormalised.
  void Remove(int32_t token);

 private:
  friend class Wanted;
  size_t PlaceOf(int32_t token) const;

  const ProposalDistribution* distribution_ = nullptr;  // null: point masses
  std::vector<double> probs_;
};

// The target's distribution, less what rejected children stood for.
class Wanted {
 public:
  // INVALID_ARGUMENT: `row`, of node `node`, is no distribution.
  static absl::StatusOr<Wanted> From(absl::Span<const float> row, int32_t node);

  double ProbOf(int32_t token) const { return probs_[static_cast<size_t>(token)]; }
  // Becomes norm(relu(this - proposed)), the rest from which a rejected `token` is replaced. False:
  // nothing is left, both agree but for rounding.
  bool TakeOut(int32_t token, const Proposed& proposed);
  // The token on which `u`, uniform over 0 <= u < 1, falls.
  int32_t Draw(double u) const;

 private:
  std::vector<double> probs_;
};

}  // namespace aerie
