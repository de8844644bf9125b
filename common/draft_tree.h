// A proposal: draft tokens and how they hang together.
//
// Node 0 is the root, the last committed token, which is not stored here. Node i+1 is tokens[i], so
// lists by token are one shorter than lists by node. A chain is a tree of width 1: parents are 0,
// 1, 2, ...
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace aerie {

// The distribution that the children of a node were drawn from: tokens that are not in it had
// probability 0.
struct ProposalDistribution {
  int32_t node = 0;             // the parent; 0: the root
  std::vector<int32_t> tokens;  // target ids, most likely first
  std::vector<float> probs;     // sum to 1
  friend bool operator==(const ProposalDistribution&, const ProposalDistribution&) = default;
};

// The same tree as links, one entry for each node, root included; -1: none.
struct TreeLinks {
  std::vector<int32_t> first_child;   // the child of lowest number
  std::vector<int32_t> next_sibling;  // the parent's next child by number
  friend bool operator==(const TreeLinks&, const TreeLinks&) = default;
};

struct DraftTree {
  std::vector<int32_t> tokens;   // target ids
  std::vector<int32_t> parents;  // node number of the parent of tokens[i]; parents[i] <= i
  std::vector<float>
      log_probs;  // natural log, of each token given its parent, over the draft vocabulary
  // Of a sampled proposal, as far as it was asked for. The children of a node are drawn one after
  // the other without replacement, in the order of their numbers.
  std::vector<float> chosen_probs;  // of tokens[i] under its parent's whole distribution; or empty
  std::vector<ProposalDistribution> distributions;  // of every node that has children; or empty

  int32_t size() const { return static_cast<int32_t>(tokens.size()); }
  bool empty() const { return tokens.empty(); }

  // Hangs `token` under the newest node.
  void AppendToChain(int32_t token, float log_prob);

  // INTERNAL unless the lists agree, every parent precedes its child, no log-probability is NaN,
  // and probabilities are such: in (0, 1], a distribution for each node with children and no other,
  // in the order of the nodes, which holds the children's tokens, falls and sums to 1.
  absl::Status Validate() const;

  // What follows takes a tree whose parents precede their children.

  // By token: edges between it and the root, 1 for the root's children.
  std::vector<int32_t> Depths() const;
  // Of the deepest token: the most that the target can accept. 0 of an empty tree.
  int32_t MaxDepth() const;

  // By node, root included, a row of ceil((size() + 1) / 8) bytes: bit b of row a, lowest bit of a
  // byte first, is set when b is a or an ancestor of a.
  std::string AncestorMask() const;
  TreeLinks Links() const;

  // How many nodes of the longest root path equal `continuation` from its start: the accepted draft
  // tokens when the target went on with `continuation`.
  int32_t CountAccepted(absl::Span<const int32_t> continuation) const;

  friend bool operator==(const DraftTree&, const DraftTree&) = default;
};

}  // namespace aerie
