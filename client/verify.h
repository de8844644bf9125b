// What a target worker keeps of a proposal. Pure functions, which know nothing of the server.
//
// Greedy verification follows the target's most likely tokens. Sampled verification draws so that
// the committed tokens have exactly the target's own distribution, whatever the drafter proposed: a
// bad drafter costs speed, never quality. docs/sampling.md says which of them is when the right
// one. The Python package has the same three, checked against the same cases.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/draft_tree.h"

namespace aerie {

struct TreeVerdict {
  std::vector<int32_t> path;    // accepted nodes, numbered as in DraftTree, from the root down
  int32_t bonus = 0;            // the target's own token behind them
  std::vector<int32_t> tokens;  // those of the path and the bonus: what to commit
};

// The target's distributions behind all nodes of a tree, the root being node 0.
struct TargetProbs {
  // [nodes, vocab_size], row-major. Each row sums to 1: softmax of the logits at the target's
  // temperature, cut to its top-k or top-p if it has one.
  absl::Span<const float> values;
  int32_t vocab_size = 0;
};

// Uniform over 0 <= u < 1, independent of all else, the drafter's own draws not excepted.
using UniformSource = absl::FunctionRef<double()>;

// `argmax` is by node: the target's choice behind it. INVALID_ARGUMENT: not one for each node.
absl::StatusOr<TreeVerdict> VerifyGreedy(const DraftTree& tree, absl::Span<const int32_t> argmax);

// Rejection sampling along a chain. A token x that was drawn from q is accepted with probability
// min(1, p(x) / q(x)); the first one that is not is replaced by a draw from norm(relu(p - q)). q is
// the node's distribution in `tree`. A tree without distributions is a greedy proposal: its tokens
// are point masses, accepted with probability p(x).
//
// INVALID_ARGUMENT: the tree is no chain; rows that do not fit it, are no probabilities or hold
// NaN; a node without its distribution while others have theirs; a token that its distribution does
// not hold. Only what the draws come across is looked at.
absl::StatusOr<TreeVerdict> VerifyChainSampled(const DraftTree& tree, const TargetProbs& target,
                                               UniformSource uniform);

// The same over a tree: siblings get their chance one after the other, in the order in which they
// were drawn. After a rejection p becomes norm(relu(p - q)), and q loses the rejected token and is
// renormalised, since siblings are drawn without replacement. Fails as VerifyChainSampled does, but
// takes any tree.
absl::StatusOr<TreeVerdict> VerifyTreeSampled(const DraftTree& tree, const TargetProbs& target,
                                              UniformSource uniform);

}  // namespace aerie
