// A draft that is drawn: chains and trees at temperature > 0.
//
// Rejection sampling keeps the target's distribution only if no node was kept, dropped or preferred
// for the token that was drawn. So how many children a node gets is settled before they are drawn,
// by how likely the node itself is, and everything that is drawn is proposed.
#pragma once

#include <cstdint>
#include <vector>

#include "server/engine/tree_growth.h"

namespace aerie {

// Parts of `count` in proportion to `weights`, by largest remainder; equal remainders: the earlier
// one first. Weights are not negative; if all are 0 they count as equal.
std::vector<int32_t> ShareOut(absl::Span<const double> weights, int32_t count);

class SampledTree : public TreeGrowth {
 public:
  // `options` of the session, at temperature > 0 and with top_m in force. `position` is the root's.
  SampledTree(const GrowthShape& shape, const SessionOptions& options, int64_t position);

  int32_t tokens_read() const override { return options_.top_m; }
  void Grow(absl::Span<const RowOutput> rows) override;
  DraftTree Tree() const override;

 private:
  // Children that the level after `level_` gets: top_k, but one is left for every level below it.
  int32_t NextLevelSize() const;

  const GrowthShape shape_;
  const SessionOptions options_;
  const int64_t position_;
  std::vector<int32_t> children_;    // of each node of the frontier
  std::vector<float> chosen_probs_;  // of each node
  std::vector<ProposalDistribution> distributions_;
};

}  // namespace aerie
