#include "common/draft_tree.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace aerie {
namespace {

// Of the sum of a distribution's probabilities: thousands of floats, each rounded once.
constexpr double kSumTolerance = 1e-3;

bool IsProbability(float value) { return value > 0.0f && value <= 1.0f; }

absl::Status CheckParents(const DraftTree& tree) {
  if (tree.parents.size() != tree.tokens.size() || tree.log_probs.size() != tree.tokens.size()) {
    return absl::InternalError(absl::StrCat(
        "a draft tree has ", tree.tokens.size(), " tokens, ", tree.parents.size(), " parents and ",
        tree.log_probs.size(), " log-probabilities; expected equal counts"));
  }
  for (size_t i = 0; i < tree.parents.size(); ++i) {
    if (tree.parents[i] < 0 || tree.parents[i] > static_cast<int32_t>(i)) {
      return absl::InternalError(absl::StrCat("node ", i + 1, " of a draft tree has parent ",
                                              tree.parents[i], "; expected 0..", i,
                                              ": parents precede children"));
    }
    if (std::isnan(tree.log_probs[i])) {
      return absl::InternalError(absl::StrCat("node ", i + 1, " of a draft tree has a ",
                                              "log-probability that is no number; expected one"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckChosenProbs(const DraftTree& tree) {
  if (tree.chosen_probs.empty()) return absl::OkStatus();
  if (tree.chosen_probs.size() != tree.tokens.size()) {
    return absl::InternalError(absl::StrCat("a draft tree has ", tree.tokens.size(), " tokens and ",
                                            tree.chosen_probs.size(),
                                            " chosen probabilities; expected one each, or none"));
  }
  for (size_t i = 0; i < tree.chosen_probs.size(); ++i) {
    if (!IsProbability(tree.chosen_probs[i])) {
      return absl::InternalError(absl::StrCat("node ", i + 1, " of a draft tree was drawn with ",
                                              "probability ", tree.chosen_probs[i],
                                              "; expected above 0 and at most 1"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckDistribution(const ProposalDistribution& distribution) {
  const auto fail = [&distribution](auto... what) {
    return absl::InternalError(
        absl::StrCat("the distribution at node ", distribution.node, " of a draft tree ", what...));
  };
  if (distribution.tokens.empty() || distribution.tokens.size() != distribution.probs.size()) {
    return fail("has ", distribution.tokens.size(), " tokens and ", distribution.probs.size(),
                " probabilities; expected equal counts above 0");
  }
  double sum = 0.0;
  for (size_t i = 0; i < distribution.probs.size(); ++i) {
    if (!IsProbability(distribution.probs[i])) {
      return fail("gives token ", distribution.tokens[i], " the probability ",
                  distribution.probs[i], "; expected above 0 and at most 1");
    }
    if (i > 0 && distribution.probs[i] > distribution.probs[i - 1]) {
      return fail("rises at token ", distribution.tokens[i], "; expected the most likely first");
    }
    sum += distribution.probs[i];
  }
  if (!(std::abs(sum - 1.0) <= kSumTolerance)) return fail("sums to ", sum, "; expected 1");
  return absl::OkStatus();
}

absl::Status CheckDistributions(const DraftTree& tree) {
  if (tree.distributions.empty()) return absl::OkStatus();
  std::vector<const ProposalDistribution*> of_node(tree.tokens.size() + 1, nullptr);
  int32_t last = -1;
  for (const ProposalDistribution& distribution : tree.distributions) {
    if (distribution.node <= last || distribution.node > tree.size()) {
      return absl::InternalError(absl::StrCat(
          "a draft tree of ", tree.size(), " tokens has a distribution at node ", distribution.node,
          " after that of ", last, "; expected those of its nodes in order"));
    }
    AERIE_RETURN_IF_ERROR(CheckDistribution(distribution));
    last = distribution.node;
    of_node[static_cast<size_t>(last)] = &distribution;
  }
  std::vector<bool> has_children(of_node.size(), false);
  for (size_t i = 0; i < tree.tokens.size(); ++i) {
    const auto parent = static_cast<size_t>(tree.parents[i]);
    has_children[parent] = true;
    if (of_node[parent] == nullptr ||
        std::count(of_node[parent]->tokens.begin(), of_node[parent]->tokens.end(),
                   tree.tokens[i]) != 1) {
      return absl::InternalError(absl::StrCat("token ", tree.tokens[i], " of a draft tree is not ",
                                              "once in a distribution at its parent, node ", parent,
                                              "; expected the one that it was drawn from"));
    }
  }
  for (const ProposalDistribution& distribution : tree.distributions) {
    if (has_children[static_cast<size_t>(distribution.node)]) continue;
    return absl::InternalError(absl::StrCat("node ", distribution.node, " of a draft tree has a ",
                                            "distribution and no children; expected both or ",
                                            "neither"));
  }
  return absl::OkStatus();
}

}  // namespace

void DraftTree::AppendToChain(int32_t token, float log_prob) {
  parents.push_back(size());
  tokens.push_back(token);
  log_probs.push_back(log_prob);
}

absl::Status DraftTree::Validate() const {
  AERIE_RETURN_IF_ERROR(CheckParents(*this));
  AERIE_RETURN_IF_ERROR(CheckChosenProbs(*this));
  return CheckDistributions(*this);
}

std::vector<int32_t> DraftTree::Depths() const {
  std::vector<int32_t> depths;
  depths.reserve(tokens.size());
  for (const int32_t parent : parents) {
    depths.push_back(parent == 0 ? 1 : depths[static_cast<size_t>(parent) - 1] + 1);
  }
  return depths;
}

int32_t DraftTree::MaxDepth() const {
  const std::vector<int32_t> depths = Depths();
  return depths.empty() ? 0 : *std::max_element(depths.begin(), depths.end());
}

std::string DraftTree::AncestorMask() const {
  const size_t nodes = tokens.size() + 1;
  const size_t row_bytes = (nodes + 7) / 8;
  std::string mask(nodes * row_bytes, '\0');
  for (size_t node = 0; node < nodes; ++node) {
    const auto row = mask.begin() + static_cast<std::ptrdiff_t>(node * row_bytes);
    if (node > 0) {
      // What the parent sees, which has been filled in already.
      const auto parent = static_cast<size_t>(parents[node - 1]) * row_bytes;
      std::copy_n(mask.begin() + static_cast<std::ptrdiff_t>(parent), row_bytes, row);
    }
    char& byte = *(row + static_cast<std::ptrdiff_t>(node / 8));
    byte = static_cast<char>(static_cast<unsigned char>(byte) | 1u << node % 8);
  }
  return mask;
}

TreeLinks DraftTree::Links() const {
  const size_t nodes = tokens.size() + 1;
  TreeLinks links{std::vector<int32_t>(nodes, -1), std::vector<int32_t>(nodes, -1)};
  // From the last node to the first: each is put before the younger children of its parent.
  for (size_t node = nodes - 1; node > 0; --node) {
    int32_t& first_child = links.first_child[static_cast<size_t>(parents[node - 1])];
    links.next_sibling[node] = first_child;
    first_child = static_cast<int32_t>(node);
  }
  return links;
}

int32_t DraftTree::CountAccepted(absl::Span<const int32_t> continuation) const {
  // Parents precede children, so one scan finds each next node of the path. Among siblings with the
  // same token the first one is followed.
  int32_t node = 0;
  int32_t accepted = 0;
  for (size_t i = 0; i < tokens.size() && accepted < static_cast<int32_t>(continuation.size());
       ++i) {
    if (parents[i] == node && tokens[i] == continuation[static_cast<size_t>(accepted)]) {
      node = static_cast<int32_t>(i) + 1;
      ++accepted;
    }
  }
  return accepted;
}

}  // namespace aerie
