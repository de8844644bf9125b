#include "server/engine/tree_search.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/check.h"

namespace aerie {

TreeSearch::TreeSearch(const GrowthShape& shape) : shape_(shape) {
  AERIE_CHECK(1 <= shape.depth && shape.depth <= shape.total && shape.top_k >= 1)
      << shape.depth << ", " << shape.top_k << ", " << shape.total;
  frontier_ = {0};
}

// No node has room for more children than the whole tree has.
int32_t TreeSearch::tokens_read() const { return std::min(shape_.top_k, shape_.total); }

void TreeSearch::Grow(absl::Span<const RowOutput> rows) {
  AERIE_CHECK(level_ < shape_.depth && rows.size() == frontier_.size())
      << rows.size() << " rows of " << frontier_.size() << " at level " << level_;
  const size_t first = nodes_.size();
  for (size_t i = 0; i < rows.size(); ++i) {
    const double score = ScoreOf(frontier_[i], /*of_root=*/0.0);
    for (const ScoredToken& child : absl::MakeConstSpan(rows[i].top).first(tokens_read())) {
      // A log-probability that rounding left above 0 must not put a child before its parent.
      nodes_.push_back({child.token, frontier_[i], child.log_prob,
                        score + std::min(0.0, static_cast<double>(child.log_prob))});
    }
  }
  std::vector<int32_t> best = BestFirst(first);
  if (best.size() > static_cast<size_t>(shape_.total)) {
    // More than will ever be proposed: the tail goes, the others keep their order.
    std::vector<bool> kept(best.size(), false);
    for (int32_t i = 0; i < shape_.total; ++i)
      kept[static_cast<size_t>(best[i]) - 1 - first] = true;
    size_t end = first;
    for (size_t i = 0; i < kept.size(); ++i) {
      if (kept[i]) nodes_[end++] = nodes_[first + i];
    }
    nodes_.resize(end);
    best = BestFirst(first);
  }
  ++level_;
  const int32_t width = level_ == shape_.depth ? 0 : shape_.WidthAt(level_);
  if (best.size() > static_cast<size_t>(width)) best.resize(static_cast<size_t>(width));
  AskFor(std::move(best));
}

DraftTree TreeSearch::Tree() const {
  std::vector<int32_t> chosen = BestFirst(0);
  if (chosen.size() > static_cast<size_t>(shape_.total)) {
    chosen.resize(static_cast<size_t>(shape_.total));
  }
  std::sort(chosen.begin(), chosen.end());
  std::vector<int32_t> number(nodes_.size() + 1, 0);  // in the proposal
  DraftTree tree;
  for (const int32_t candidate : chosen) {
    const Node& node = nodes_[static_cast<size_t>(candidate) - 1];
    tree.tokens.push_back(node.token);
    tree.parents.push_back(number[static_cast<size_t>(node.parent)]);
    tree.log_probs.push_back(node.log_prob);
    number[static_cast<size_t>(candidate)] = tree.size();
  }
  return tree;
}

std::vector<int32_t> TreeSearch::BestFirst(size_t first) const {
  std::vector<int32_t> best(nodes_.size() - first);
  std::iota(best.begin(), best.end(), static_cast<int32_t>(first) + 1);
  std::stable_sort(best.begin(), best.end(), [this](int32_t a, int32_t b) {
    return nodes_[static_cast<size_t>(a) - 1].score > nodes_[static_cast<size_t>(b) - 1].score;
  });
  return best;
}

}  // namespace aerie
