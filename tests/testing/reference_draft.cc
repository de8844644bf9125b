#include "tests/testing/reference_draft.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "common/check.h"
#include "server/engine/proposal_sampler.h"

namespace aerie {
namespace {

// Rows that any reference drafts, at most.
constexpr int64_t kDraftRows = 2048;

FakeDraftModelOptions StoreFor(const Replay& replay) {
  FakeDraftModelOptions options;
  const int64_t rows =
      replay.visible.start + static_cast<int64_t>(replay.tokens.size()) + kDraftRows;
  options.kv_store.page_rows = 64;
  options.kv_store.num_pages = static_cast<int32_t>(rows / options.kv_store.page_rows + 1);
  return options;
}

struct Node {
  int32_t token = 0;
  int32_t parent = -1;  // among the nodes; -1: the root
  float log_prob = 0.0f;
  double score = 0.0;
  int32_t row = -1;
  RowOutput output;
};

struct Shape {
  int32_t depth, top_k, total;
};

Shape ShapeOf(const SessionOptions& options, int32_t k) {
  if (!options.tree.has_value()) return {k, 1, k};
  const int32_t total = std::min(k, options.tree->total_tokens);
  // Deeper than there are tokens to propose nothing can be.
  return {std::min(options.tree->depth, total), options.tree->top_k, total};
}

// Numbers of the best by score; equal scores: the earlier one.
std::vector<size_t> Best(const std::vector<Node>& nodes, std::vector<size_t> among, size_t count) {
  std::stable_sort(among.begin(), among.end(),
                   [&](size_t a, size_t b) { return nodes[a].score > nodes[b].score; });
  if (among.size() > count) among.resize(count);
  return among;
}

DraftTree SearchedTree(SoloDrafter& drafter, const Shape& shape) {
  std::vector<Node> nodes;
  std::vector<std::optional<size_t>> frontier = {std::nullopt};
  int32_t rows = 0;
  for (int32_t level = 1; level <= shape.depth; ++level) {
    std::vector<size_t> candidates;
    for (const auto& parent : frontier) {
      const RowOutput output = parent ? nodes[*parent].output : drafter.root();
      for (int32_t i = 0; i < shape.top_k; ++i) {
        const ScoredToken& child = output.top[static_cast<size_t>(i)];
        candidates.push_back(nodes.size());
        nodes.push_back({child.token, parent ? static_cast<int32_t>(*parent) : -1, child.log_prob,
                         (parent ? nodes[*parent].score : 0.0) + child.log_prob});
      }
    }
    if (level == shape.depth) break;
    frontier.clear();
    for (const size_t best : Best(nodes, candidates, static_cast<size_t>(shape.top_k))) {
      Node& node = nodes[best];
      node.output = drafter.Add(node.token,
                                node.parent < 0 ? -1 : nodes[static_cast<size_t>(node.parent)].row);
      node.row = rows++;
      frontier.push_back(best);
    }
  }
  std::vector<size_t> all(nodes.size());
  std::iota(all.begin(), all.end(), size_t{0});
  std::vector<size_t> chosen = Best(nodes, all, static_cast<size_t>(shape.total));
  std::sort(chosen.begin(), chosen.end());
  DraftTree tree;
  for (const size_t node : chosen) {
    const auto place =
        std::find(chosen.begin(), chosen.end(), static_cast<size_t>(nodes[node].parent));
    tree.tokens.push_back(nodes[node].token);
    tree.parents.push_back(
        nodes[node].parent < 0 ? 0 : static_cast<int32_t>(place - chosen.begin()) + 1);
    tree.log_probs.push_back(nodes[node].log_prob);
  }
  return tree;
}

// By largest remainder, one seat after the other.
std::vector<int32_t> Shares(const std::vector<double>& weights, int32_t count) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int32_t> shares;
  std::vector<double> rest;
  for (const double weight : weights) {
    const double part =
        sum > 0 ? count * (weight / sum) : count / static_cast<double>(weights.size());
    shares.push_back(static_cast<int32_t>(part));
    rest.push_back(part - shares.back());
  }
  while (std::accumulate(shares.begin(), shares.end(), 0) < count) {
    const auto most = std::max_element(rest.begin(), rest.end());
    ++shares[static_cast<size_t>(most - rest.begin())];
    *most = -1;
  }
  return shares;
}

DraftTree DrawnTree(SoloDrafter& drafter, const Shape& shape, const SessionOptions& options,
                    int64_t position) {
  DraftTree tree;
  std::vector<Node> nodes;
  std::vector<int32_t> frontier = {-1};
  int32_t rows = 0;
  for (int32_t level = 1; level <= shape.depth; ++level) {
    const int32_t size = std::min(
        shape.top_k, shape.total - static_cast<int32_t>(nodes.size()) - (shape.depth - level));
    std::vector<double> weights;
    for (const int32_t node : frontier) {
      weights.push_back(node < 0 ? 1.0 : nodes[static_cast<size_t>(node)].score);
    }
    const std::vector<int32_t> shares = Shares(weights, size);
    std::vector<int32_t> drawn_nodes;
    for (size_t i = 0; i < frontier.size(); ++i) {
      if (shares[i] == 0) continue;
      const int32_t parent = frontier[i];
      RowOutput output = drafter.root();
      if (parent >= 0) {
        Node& node = nodes[static_cast<size_t>(parent)];
        output = drafter.Add(node.token,
                             node.parent < 0 ? -1 : nodes[static_cast<size_t>(node.parent)].row);
        node.row = rows++;
      }
      output.top.resize(static_cast<size_t>(options.top_m));
      const std::vector<float> q = ProposalProbabilities(output.top, options.temperature);
      for (const size_t drawn : DrawWithoutReplacement(q, static_cast<size_t>(shares[i]),
                                                       {options.seed, position, parent + 1})) {
        drawn_nodes.push_back(static_cast<int32_t>(nodes.size()));
        const ScoredToken& token = output.top[drawn];
        nodes.push_back(
            {token.token, parent, token.log_prob, weights[i] * static_cast<double>(q[drawn])});
        tree.tokens.push_back(token.token);
        tree.parents.push_back(parent + 1);
        tree.log_probs.push_back(token.log_prob);
        if (options.probs != ProposalProbs::kNone) tree.chosen_probs.push_back(q[drawn]);
      }
      if (options.probs != ProposalProbs::kTopM) continue;
      ProposalDistribution distribution{.node = parent + 1};
      for (size_t j = 0; j < q.size(); ++j) {
        if (!(q[j] > 0)) continue;
        distribution.tokens.push_back(output.top[j].token);
        distribution.probs.push_back(q[j]);
      }
      tree.distributions.push_back(std::move(distribution));
    }
    frontier = drawn_nodes;
  }
  return tree;
}

}  // namespace

SoloDrafter::SoloDrafter(const Replay& replay)
    : model_(std::make_unique<FakeDraftModel>(StoreFor(replay))), replay_(replay) {
  for (PageId page = model_->kv_store().num_pages; page > 0; --page) pages_.push_back(page - 1);
  root_ = Step({.length = replay.visible.start,
                .tokens = replay.tokens,
                .aux = replay.rows,
                .outputs = Outputs::kLast})
              .rows.front();
}

SoloDrafter::~SoloDrafter() { model_->ReleaseSlot(0); }

RowOutput SoloDrafter::Add(int32_t token, int32_t parent) {
  return Step({.length = replay_.visible.start + static_cast<int64_t>(replay_.tokens.size()),
               .tokens = {&token, 1},
               .parents = {&parent, 1},
               .outputs = Outputs::kEvery})
      .rows.front();
}

StepOutput SoloDrafter::Step(StepSequence part) {
  part.pages = pages_;
  part.visible = replay_.visible;
  const auto outputs = model_->Step({&part, 1}, model_->spec().draft_vocab_size);
  AERIE_CHECK(outputs.ok()) << outputs.status().ToString();
  return outputs->front();
}

DraftTree ReferenceDraft(const Replay& replay, const SessionOptions& options, int32_t k) {
  if (k == 0) return {};
  SoloDrafter drafter(replay);
  const Shape shape = ShapeOf(options, k);
  if (options.temperature == 0) return SearchedTree(drafter, shape);
  return DrawnTree(drafter, shape, options,
                   replay.visible.start + static_cast<int64_t>(replay.tokens.size()));
}

}  // namespace aerie
