"""What a target worker keeps of a proposal. Pure functions, which know nothing of the server.

Greedy verification follows the target's most likely tokens. Sampled verification draws so that the
committed tokens have exactly the target's own distribution, whatever the drafter proposed: a bad
drafter costs speed, never quality. docs/sampling.md says which of them is when the right one. The
C++ client has the same three, checked against the same cases.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from aerie_draft.rejection import NodeDistribution, Proposed, draw, probabilities

# Uniform over 0 <= u < 1, independent of all else, the drafter's own draws not excepted: the method
# `random` of a numpy.random.Generator, for one.
Uniform = Callable[[], float]


class DraftedTree(Protocol):
    """Of a proposal, what verification needs. Node 0 is the root, node i is tokens[i - 1]."""

    @property
    def tokens(self) -> Sequence[int]: ...

    @property
    def parents(self) -> Sequence[int]: ...

    @property
    def distributions(self) -> Mapping[int, NodeDistribution]: ...


@dataclasses.dataclass(frozen=True)
class TreeVerdict:
    """What the target keeps of a proposal."""

    path: tuple[int, ...]  # accepted nodes, from the root down
    bonus: int  # the target's own token behind them
    tokens: tuple[int, ...]  # those of the path and the bonus: what to commit

    @property
    def accepted(self) -> int:
        """How many draft tokens were kept."""
        return len(self.path)


def verify_greedy(tree: DraftedTree, target_argmax: Sequence[int]) -> TreeVerdict:
    """Follows the target's choices down the tree.

    `target_argmax` is by node: the target's most likely token behind it.
    """
    _check_tree(tree)
    if len(target_argmax) != len(tree.tokens) + 1:
        raise ValueError(
            f"the target gave {len(target_argmax)} choices for a proposal of {len(tree.tokens)} "
            "tokens; expected one for each node, the root included; run it over root and tree"
        )
    path: list[int] = []
    tokens: list[int] = []
    node, bonus = 0, int(target_argmax[0])
    # Parents precede children, so one scan finds each next node of the path.
    for child, (token, parent) in enumerate(zip(tree.tokens, tree.parents), 1):
        if parent == node and token == bonus:
            path.append(child)
            tokens.append(bonus)
            node, bonus = child, int(target_argmax[child])
    return TreeVerdict(tuple(path), bonus, (*tokens, bonus))


def verify_chain_sampled(
    tree: DraftedTree, target_probs: np.ndarray, uniform: Uniform
) -> TreeVerdict:
    """Rejection sampling along a chain.

    A token x that was drawn from q is accepted with probability min(1, p(x) / q(x)); the first one
    that is not is replaced by a draw from norm(relu(p - q)). p is the row of its parent's node in
    `target_probs`, [nodes, vocabulary], each row summing to 1: softmax of the logits at the
    target's temperature, cut to its top-k or top-p if it has one. q is the node's entry in
    `tree.distributions`. A proposal without distributions is a greedy one: its tokens are point
    masses, accepted with probability p(x).

    ValueError: the tree is no chain; rows that do not fit it, are no probabilities or hold NaN; a
    node without its distribution while others have theirs; a token that its distribution does not
    hold. Only what the draws come across is looked at.
    """
    _check_tree(tree)
    for node, parent in enumerate(tree.parents, 1):
        if parent != node - 1:
            raise ValueError(
                f"node {node} has parent {parent}; expected a chain, where it is {node - 1}; "
                "verify a tree as a tree"
            )
    # With one child a node, trees have the rule of chains.
    return verify_tree_sampled(tree, target_probs, uniform)


def verify_tree_sampled(
    tree: DraftedTree, target_probs: np.ndarray, uniform: Uniform
) -> TreeVerdict:
    """Multi-round rejection sampling over a tree; as verify_chain_sampled, but for any tree.

    Siblings get their chance one after the other, in the order in which they were drawn. After a
    rejection p becomes norm(relu(p - q)), and q loses the rejected token and is renormalised, since
    siblings are drawn without replacement.
    """
    _check_tree(tree)
    target_probs = np.asarray(target_probs)
    _check_target(tree, target_probs)
    children: dict[int, list[int]] = {}
    for child, parent in enumerate(tree.parents, 1):
        children.setdefault(int(parent), []).append(child)
    path: list[int] = []
    node = 0
    while True:
        p = probabilities(target_probs[node], "the target's", node)
        child, p = _turn(tree, node, children.get(node, []), p, uniform)
        if child == 0:
            bonus = draw(p, uniform())
            tokens = (*(int(tree.tokens[n - 1]) for n in path), bonus)
            return TreeVerdict(tuple(path), bonus, tokens)
        path.append(child)
        node = child


def _turn(
    tree: DraftedTree, node: int, children: Sequence[int], p: np.ndarray, uniform: Uniform
) -> tuple[int, np.ndarray]:
    """The child of `node` that is accepted, or 0 and what the bonus is to be drawn from."""
    if not children:
        return 0, p
    q = _proposed_behind(tree, node, len(p))
    for child in children:
        token = int(tree.tokens[child - 1])
        q_of_token = q.prob_of(token)
        if not q_of_token > 0:
            raise ValueError(
                f"node {child} holds token {token}, which cannot have been drawn from the "
                f"distribution behind node {node}; expected one of its tokens, each only once; "
                "keep what the server sent"
            )
        if uniform() * q_of_token < p[token]:
            return child, p
        q.take_from(p, token)
        left = p.sum()
        if not left > 0:
            # p and q agree but for rounding, so the rejection was rounding too.
            return child, p
        p /= left
        q.remove(token)
    return 0, p


def _proposed_behind(tree: DraftedTree, node: int, vocab_size: int) -> Proposed:
    if not tree.distributions:
        return Proposed.point_masses()
    if node not in tree.distributions:
        raise ValueError(
            f"node {node} has children but no distribution, and others have one; expected one for "
            "each such node; keep what the server sent as it is"
        )
    return Proposed.of(tree.distributions[node], node, vocab_size)


def _check_tree(tree: DraftedTree) -> None:
    if len(tree.parents) != len(tree.tokens):
        raise ValueError(
            f"the proposal has {len(tree.tokens)} tokens and {len(tree.parents)} parents; expected "
            "one parent for each token; keep what the server sent"
        )
    for node, parent in enumerate(tree.parents, 1):
        if not 0 <= parent < node:
            raise ValueError(
                f"node {node} of the proposal has parent {parent}; expected 0..{node - 1}: parents "
                "precede children; keep what the server sent"
            )


def _check_target(tree: DraftedTree, target_probs: np.ndarray) -> None:
    nodes = len(tree.tokens) + 1
    if target_probs.ndim != 2 or len(target_probs) != nodes:
        raise ValueError(
            f"the target gave probabilities of shape {target_probs.shape}; expected a row for each "
            f"of {nodes} nodes, the root included; run the target over root and tree"
        )
    vocab_size = target_probs.shape[1]
    for token in tree.tokens:
        if not 0 <= token < vocab_size:
            raise ValueError(
                f"the proposal holds token {token}; expected 0..{vocab_size - 1}; give the "
                "target's whole vocabulary"
            )
