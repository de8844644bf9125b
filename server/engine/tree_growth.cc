#include "server/engine/tree_growth.h"

#include <utility>

#include "common/check.h"

namespace aerie {

int64_t GrowthShape::DraftRows() const {
  int64_t rows = 0;
  for (int32_t level = 1; level < depth; ++level) rows += WidthAt(level);
  return rows;
}

GrowthShape ShapeFor(const SessionOptions& options, int32_t k) {
  AERIE_CHECK(k >= 1) << k;
  if (!options.tree.has_value()) return {.depth = k, .top_k = 1, .total = k};
  const int32_t total = std::min(k, options.tree->total_tokens);
  // A path of so many nodes has no room for one more.
  return {
      .depth = std::min(options.tree->depth, total), .top_k = options.tree->top_k, .total = total};
}

int32_t DepthOf(const DraftTree& tree) {
  std::vector<int32_t> depths = {0};  // by node; parents precede children
  for (const int32_t parent : tree.parents) {
    depths.push_back(depths[static_cast<size_t>(parent)] + 1);
  }
  return *std::max_element(depths.begin(), depths.end());
}

void TreeGrowth::AskFor(std::vector<int32_t> nodes) {
  tokens_.clear();
  parents_.clear();
  for (const int32_t number : nodes) {
    Node& node = nodes_[static_cast<size_t>(number) - 1];
    tokens_.push_back(node.token);
    parents_.push_back(RowOf(node.parent));
    node.row = rows_asked_++;
  }
  frontier_ = std::move(nodes);
}

}  // namespace aerie
