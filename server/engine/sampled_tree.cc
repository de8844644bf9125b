#include "server/engine/sampled_tree.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/check.h"
#include "server/engine/proposal_sampler.h"

namespace aerie {

std::vector<int32_t> ShareOut(absl::Span<const double> weights, int32_t count) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int32_t> shares;
  std::vector<double> remainders;
  int32_t left = count;
  for (const double weight : weights) {
    const double part =
        sum > 0 ? count * (weight / sum) : count / static_cast<double>(weights.size());
    const int32_t share = std::min(left, static_cast<int32_t>(std::floor(part)));
    shares.push_back(share);
    remainders.push_back(part - share);
    left -= share;
  }
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  for (size_t i = 0; left > 0; i = (i + 1) % order.size(), --left) ++shares[order[i]];
  return shares;
}

SampledTree::SampledTree(const GrowthShape& shape, const SessionOptions& options, int64_t position)
    : shape_(shape), options_(options), position_(position) {
  AERIE_CHECK(options.temperature > 0 && options.top_m >= shape.top_k)
      << options.temperature << ", " << options.top_m;
  AERIE_CHECK(1 <= shape.depth && shape.depth <= shape.total) << shape.depth << ", " << shape.total;
  frontier_ = {0};
  children_ = {NextLevelSize()};
}

void SampledTree::Grow(absl::Span<const RowOutput> rows) {
  AERIE_CHECK(level_ < shape_.depth && rows.size() == frontier_.size())
      << rows.size() << " rows of " << frontier_.size() << " at level " << level_;
  const auto first = static_cast<int32_t>(nodes_.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const int32_t parent = frontier_[i];
    const double score = ScoreOf(parent, /*of_root=*/1.0);
    const auto top = absl::MakeConstSpan(rows[i].top).first(static_cast<size_t>(options_.top_m));
    const std::vector<float> q = ProposalProbabilities(top, options_.temperature);
    for (const size_t drawn : DrawWithoutReplacement(q, static_cast<size_t>(children_[i]),
                                                     {options_.seed, position_, parent})) {
      nodes_.push_back({top[drawn].token, parent, top[drawn].log_prob, score * q[drawn]});
      chosen_probs_.push_back(q[drawn]);
    }
    if (options_.probs != ProposalProbs::kTopM) continue;
    ProposalDistribution distribution{.node = parent};
    for (size_t j = 0; j < q.size() && q[j] > 0; ++j) {
      distribution.tokens.push_back(top[j].token);
      distribution.probs.push_back(q[j]);
    }
    distributions_.push_back(std::move(distribution));
  }
  ++level_;

  std::vector<double> weights;
  for (size_t i = static_cast<size_t>(first); i < nodes_.size(); ++i) {
    weights.push_back(nodes_[i].score);
  }
  const std::vector<int32_t> shares = ShareOut(weights, NextLevelSize());
  std::vector<int32_t> parents;
  children_.clear();
  for (size_t i = 0; i < shares.size(); ++i) {
    if (shares[i] == 0) continue;
    parents.push_back(first + 1 + static_cast<int32_t>(i));
    children_.push_back(shares[i]);
  }
  AskFor(std::move(parents));
}

DraftTree SampledTree::Tree() const {
  DraftTree tree;
  for (const Node& node : nodes_) {
    tree.tokens.push_back(node.token);
    tree.parents.push_back(node.parent);
    tree.log_probs.push_back(node.log_prob);
  }
  if (options_.probs != ProposalProbs::kNone) tree.chosen_probs = chosen_probs_;
  tree.distributions = distributions_;
  return tree;
}

int32_t SampledTree::NextLevelSize() const {
  if (level_ == shape_.depth) return 0;
  const int32_t levels_below = shape_.depth - level_ - 1;
  return std::min(shape_.top_k, shape_.total - static_cast<int32_t>(nodes_.size()) - levels_below);
}

}  // namespace aerie
