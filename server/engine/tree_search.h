// The search for the most likely draft tree, as EAGLE-2 publishes it: at each level the best nodes
// are expanded, and of everything seen the best are proposed.
//
// A node's score is the sum of log-probabilities along its path. Where scores are equal the earlier
// candidate is the better one: level by level, within a level in the order of the parents' scores,
// and the children of one node in the order of the drafter's own list.
#pragma once

#include <cstdint>

#include "server/engine/tree_growth.h"

namespace aerie {

class TreeSearch : public TreeGrowth {
 public:
  explicit TreeSearch(const GrowthShape& shape);

  int32_t tokens_read() const override;
  void Grow(absl::Span<const RowOutput> rows) override;
  // The best of all candidates; parents precede their children.
  DraftTree Tree() const override;

 private:
  // Numbers of the candidates behind `first`, best first.
  std::vector<int32_t> BestFirst(size_t first) const;

  const GrowthShape shape_;
};

}  // namespace aerie
