"""One node of a proposal under rejection sampling: what its children were drawn from.

All is kept in float64 that sums to 1, so that a softmax in a narrow type does not shift the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

# How far the sum of a softmax in a narrow type may be from 1.
_SUM_TOLERANCE = 0.02


class NodeDistribution(Protocol):
    """What the children of a node were drawn from; tokens that are not in it had probability 0."""

    @property
    def tokens(self) -> Sequence[int] | np.ndarray: ...

    @property
    def probs(self) -> Sequence[float] | np.ndarray: ...


class Proposed:
    """The children's distribution, less the children that were rejected."""

    def __init__(self, tokens: np.ndarray | None, probs: np.ndarray | None):
        """Made by point_masses() and of()."""
        self._tokens = tokens
        self._probs = probs

    @classmethod
    def point_masses(cls) -> Proposed:
        """All probability on whichever token is asked for: a greedy proposal."""
        return cls(None, None)

    @classmethod
    def of(cls, distribution: NodeDistribution, node: int, vocab_size: int) -> Proposed:
        """ValueError: no distribution over the vocabulary."""
        tokens = np.asarray(distribution.tokens, dtype=np.int64)
        if (
            tokens.shape != np.shape(distribution.probs)
            or len(np.unique(tokens)) != len(tokens)
            or not ((tokens >= 0) & (tokens < vocab_size)).all()
        ):
            raise ValueError(
                f"the proposal's distribution behind node {node} has {len(tokens)} tokens and "
                f"{len(distribution.probs)} probabilities; expected one probability for each "
                f"token, and distinct tokens in 0..{vocab_size - 1}; keep what the server sent"
            )
        return cls(tokens, probabilities(distribution.probs, "the proposal's", node))

    def prob_of(self, token: int) -> float:
        """0: it cannot have been drawn."""
        if self._tokens is None:
            return 1.0
        return float(self._probs[self._tokens == token].sum())

    def take_from(self, p: np.ndarray, token: int) -> None:
        """p becomes relu(p - q), for a rejected token; what is left is not normalised."""
        if self._tokens is None:
            p[token] = 0
        else:
            p[self._tokens] = np.maximum(p[self._tokens] - self._probs, 0)

    def remove(self, token: int) -> None:
        """Siblings are drawn without replacement: the rest is renormalised."""
        if self._tokens is None:
            return
        self._probs[self._tokens == token] = 0
        # Nothing is left when all were drawn; then no sibling follows.
        if (rest := self._probs.sum()) > 0:
            self._probs /= rest


def probabilities(values: Sequence[float] | np.ndarray, whose: str, node: int) -> np.ndarray:
    """A copy that sums to 1. ValueError: these are no probabilities."""
    probs = np.array(values, dtype=np.float64)
    total = probs.sum()
    negative = bool((probs < 0).any())
    # NaN is no sum near 1 either.
    if negative or not abs(total - 1) <= _SUM_TOLERANCE:
        raise ValueError(
            f"{whose} distribution behind node {node} sums to {total}"
            f"{' and has negative entries' if negative else ''}; expected probabilities, which are "
            "0 or more and sum to 1; apply the softmax to logits, and keep what the server sent as "
            "it is"
        )
    return probs / total


def draw(p: np.ndarray, u: float) -> int:
    """The token on which u falls when tokens lie side by side, each as wide as its probability."""
    reached = np.cumsum(p)
    place = int(np.searchsorted(reached, u * reached[-1], side="right"))
    # u * sum can round up to the sum.
    return min(place, int(np.flatnonzero(p)[-1]))
