#include "client/verify.h"

#include "absl/strings/str_cat.h"
#include "client/rejection.h"
#include "common/status_macros.h"

namespace aerie {
namespace {

int32_t TokenOf(const DraftTree& tree, int32_t node) {
  return tree.tokens[static_cast<size_t>(node) - 1];
}

int32_t ParentOf(const DraftTree& tree, int32_t node) {
  return tree.parents[static_cast<size_t>(node) - 1];
}

// In the order in which they were drawn, which is that of their numbers.
std::vector<int32_t> ChildrenOf(const DraftTree& tree, int32_t node) {
  std::vector<int32_t> children;
  for (int32_t child = node + 1; child <= tree.size(); ++child) {
    if (ParentOf(tree, child) == node) children.push_back(child);
  }
  return children;
}

// A worker may have built the tree itself, so what is wrong with it is the caller's fault.
absl::Status CheckTree(const DraftTree& tree) {
  if (tree.parents.size() != tree.tokens.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the proposal has ", tree.tokens.size(), " tokens and ", tree.parents.size(),
                     " parents; expected one parent for each token; keep what the server sent"));
  }
  for (int32_t node = 1; node <= tree.size(); ++node) {
    if (const int32_t parent = ParentOf(tree, node); parent < 0 || parent >= node) {
      return absl::InvalidArgumentError(
          absl::StrCat("node ", node, " of the proposal has parent ", parent, "; expected 0..",
                       node - 1, ": parents precede children; keep what the server sent"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckTarget(const DraftTree& tree, const TargetProbs& target) {
  const auto nodes = static_cast<size_t>(tree.size()) + 1;
  if (target.vocab_size < 1 ||
      target.values.size() != nodes * static_cast<size_t>(target.vocab_size)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the target gave ", target.values.size(), " probabilities for a vocabulary of ",
        target.vocab_size, "; expected a row for each of ", nodes,
        " nodes, the root included; run the target over root and tree"));
  }
  for (const int32_t token : tree.tokens) {
    if (token < 0 || token >= target.vocab_size) {
      return absl::InvalidArgumentError(absl::StrCat("the proposal holds token ", token,
                                                     "; expected 0..", target.vocab_size - 1,
                                                     "; give the target's whole vocabulary"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Proposed> ProposedBehind(const DraftTree& tree, int32_t node, int32_t vocab_size) {
  if (tree.distributions.empty()) return Proposed::PointMasses();
  for (const ProposalDistribution& distribution : tree.distributions) {
    if (distribution.node == node) return Proposed::From(distribution, vocab_size);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("node ", node,
                   " has children but no distribution, and others have one; "
                   "expected one for each such node; keep what the server sent as it is"));
}

// One node's turn: the child that is accepted, or 0 and the bonus that takes its place.
struct Turn {
  int32_t child = 0;
  int32_t bonus = 0;
};

absl::StatusOr<Turn> TakeTurn(const DraftTree& tree, int32_t node, const TargetProbs& target,
                              UniformSource uniform) {
  const auto width = static_cast<size_t>(target.vocab_size);
  AERIE_ASSIGN_OR_RETURN(
      Wanted p,
      Wanted::From(target.values.subspan(static_cast<size_t>(node) * width, width), node));
  const std::vector<int32_t> children = ChildrenOf(tree, node);
  if (children.empty()) return Turn{.bonus = p.Draw(uniform())};
  AERIE_ASSIGN_OR_RETURN(Proposed q, ProposedBehind(tree, node, target.vocab_size));
  for (const int32_t child : children) {
    const int32_t token = TokenOf(tree, child);
    const double q_of_token = q.ProbOf(token);
    if (!(q_of_token > 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("node ", child, " holds token ", token,
                       ", which cannot have been drawn from the distribution behind node ", node,
                       "; expected one of its tokens, each only once; keep what the server sent"));
    }
    if (uniform() * q_of_token < p.ProbOf(token)) return Turn{.child = child};
    // Where p and q agree but for rounding, the rejection was rounding too.
    if (!p.TakeOut(token, q)) return Turn{.child = child};
    q.Remove(token);
  }
  return Turn{.bonus = p.Draw(uniform())};
}

}  // namespace

absl::StatusOr<TreeVerdict> VerifyGreedy(const DraftTree& tree, absl::Span<const int32_t> argmax) {
  AERIE_RETURN_IF_ERROR(CheckTree(tree));
  if (argmax.size() != static_cast<size_t>(tree.size()) + 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the target gave ", argmax.size(), " choices for a proposal of ", tree.size(),
        " tokens; expected one for each node, the root included; run it over root and tree"));
  }
  TreeVerdict verdict;
  verdict.bonus = argmax[0];
  // Parents precede children, so one scan finds each next node of the path.
  for (int32_t node = 1, last = 0; node <= tree.size(); ++node) {
    if (ParentOf(tree, node) != last || TokenOf(tree, node) != verdict.bonus) continue;
    last = node;
    verdict.path.push_back(node);
    verdict.tokens.push_back(verdict.bonus);
    verdict.bonus = argmax[static_cast<size_t>(node)];
  }
  verdict.tokens.push_back(verdict.bonus);
  return verdict;
}

absl::StatusOr<TreeVerdict> VerifyTreeSampled(const DraftTree& tree, const TargetProbs& target,
                                              UniformSource uniform) {
  AERIE_RETURN_IF_ERROR(CheckTree(tree));
  AERIE_RETURN_IF_ERROR(CheckTarget(tree, target));
  TreeVerdict verdict;
  for (int32_t node = 0;;) {
    AERIE_ASSIGN_OR_RETURN(const Turn turn, TakeTurn(tree, node, target, uniform));
    if (turn.child == 0) {
      verdict.bonus = turn.bonus;
      verdict.tokens.push_back(turn.bonus);
      return verdict;
    }
    node = turn.child;
    verdict.path.push_back(node);
    verdict.tokens.push_back(TokenOf(tree, node));
  }
}

absl::StatusOr<TreeVerdict> VerifyChainSampled(const DraftTree& tree, const TargetProbs& target,
                                               UniformSource uniform) {
  AERIE_RETURN_IF_ERROR(CheckTree(tree));
  for (int32_t node = 1; node <= tree.size(); ++node) {
    if (const int32_t parent = ParentOf(tree, node); parent != node - 1) {
      return absl::InvalidArgumentError(absl::StrCat("node ", node, " has parent ", parent,
                                                     "; expected a chain, where it is ", node - 1,
                                                     "; verify a tree as a tree"));
    }
  }
  // With one child a node, trees have the rule of chains.
  return VerifyTreeSampled(tree, target, uniform);
}

}  // namespace aerie
