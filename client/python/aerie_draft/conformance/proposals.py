"""The strict server's drafts: so many tokens of the worker's own text, then tokens that are wrong.

A worker that keeps another number of tokens than was planned does not verify what it was given.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from aerie_draft._proto import draft_pb2
from aerie_draft.conformance.scenarios import ALL, MOST, NONE, ONE


@dataclasses.dataclass
class Planned:
    """A proposal made when its session had `at` rows. Node 0 is the newest token."""

    at: int
    tokens: list[int]
    parents: list[int]
    right: int  # levels whose right token is in it
    delivered: bool = True  # the worker got it, as far as the server can know
    after_hold: bool = False  # made after an answer had been held back

    @property
    def levels(self) -> list[int]:
        """Of each token, counted from 0."""
        levels: list[int] = []
        for parent in self.parents:
            levels.append(0 if parent == 0 else levels[parent - 1] + 1)
        return levels

    @property
    def has_wrong(self) -> bool:
        return len(self.tokens) > self.right

    def kept_by(self, continuation: Sequence[int]) -> int:
        node = kept = 0
        for child, (token, parent) in enumerate(zip(self.tokens, self.parents), 1):
            if kept < len(continuation) and parent == node and token == continuation[kept]:
                node, kept = child, kept + 1
        return kept

    def wrong_at(self, level: int, right: int | None) -> set[int]:
        """The tokens of a level that the text does not have there."""
        return {t for t, at in zip(self.tokens, self.levels) if at == level and t != right}


def wanted_right(how: str, k: int) -> int:
    return {ALL: k, NONE: 0, ONE: min(1, k), MOST: max(k - 1, 0)}[how]


def plan(
    at: int,
    rest: Sequence[int],
    count: int,
    right: int,
    vocab: int,
    tree: draft_pb2.TreeShape | None,
) -> Planned:
    """A chain of `count` tokens, or a tree of at most so many, behind which the text goes on with
    `rest` (as far as it is known). The first `right` levels hold its token."""
    right = min(right, len(rest))

    def token(level: int, wrong_by: int) -> int:
        known = rest[level] if level < len(rest) else (7919 * (at + level)) % vocab
        return (known + wrong_by) % vocab

    tokens: list[int] = []
    parents: list[int] = []
    if tree is None:
        tokens = [token(level, 0 if level < right else 1) for level in range(count)]
        return Planned(at, tokens, list(range(count)), min(right, count))
    parent = level = 0
    # A wrong token in front of the right one, so that a worker that takes the first child loses.
    while level < tree.depth and len(tokens) + 2 <= min(count, tree.total_tokens):
        tokens += [token(level, 1), token(level, 0 if level < right else 2)]
        parents += [parent, parent]
        parent = len(tokens)
        level += 1
    return Planned(at, tokens, parents, min(right, level))


def fill_tree(planned: Planned, options: draft_pb2.SessionOptions, response) -> None:
    """Writes the proposal into `response`, with what the session's options ask for."""
    tree = response.tree
    tree.token_ids.extend(planned.tokens)
    tree.parents.extend(planned.parents)
    tree.log_probs.extend([-0.5] * len(planned.tokens))
    tree.positions.extend(planned.at + 1 + level for level in planned.levels)
    sampled, shaped = options.HasField("sampling"), options.HasField("tree")
    pb = draft_pb2
    if shaped:
        method = pb.PROPOSAL_METHOD_SAMPLED_TREE if sampled else pb.PROPOSAL_METHOD_GREEDY_TREE
    else:
        method = pb.PROPOSAL_METHOD_SAMPLED_CHAIN if sampled else pb.PROPOSAL_METHOD_GREEDY_CHAIN
    response.method = method
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(planned.parents, 1):
        children.setdefault(parent, []).append(node)
    if sampled and options.sampling.proposal_probs:
        shares = [1 / len(children[parent]) for parent in planned.parents]
        tree.chosen_probs.extend(shares)
        if options.sampling.proposal_probs == pb.PROPOSAL_PROBS_TOP_M:
            for parent, nodes in children.items():
                drawn_from = [planned.tokens[node - 1] for node in nodes]
                share = 1 / len(nodes)
                tree.distributions.add(
                    node=parent, token_ids=drawn_from, probs=[share] * len(nodes)
                )
    nodes = len(planned.tokens) + 1
    if options.extras.ancestor_mask and planned.tokens:
        tree.ancestor_mask = _mask(planned.parents)
    if options.extras.links and planned.tokens:
        first, following = [-1] * nodes, [-1] * nodes
        for siblings in children.values():
            first[planned.parents[siblings[0] - 1]] = siblings[0]
            for elder, younger in zip(siblings, siblings[1:]):
                following[elder] = younger
        tree.first_child.extend(first)
        tree.next_sibling.extend(following)


def _mask(parents: Sequence[int]) -> bytes:
    """Bit b of row a: b is a or an ancestor of a; rows of whole bytes, lowest bit first."""
    rows = [1]
    for node, parent in enumerate(parents, 1):
        rows.append(rows[parent] | 1 << node)
    size = (len(rows) + 7) // 8
    return b"".join(row.to_bytes(size, "little") for row in rows)
