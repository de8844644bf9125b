"""What a worker may ask of a session beyond a greedy chain from row 0: plain values.

None and zero stand for "not asked for". Contradictions are the server's to refuse, with the fields
named; it overrides nothing.
"""

from __future__ import annotations

import dataclasses
import enum


@dataclasses.dataclass(frozen=True)
class TreeShape:
    """A dynamic tree: at each level the `top_k` likeliest nodes get `top_k` children each, and of
    all nodes the `total_tokens` likeliest are proposed."""

    depth: int  # levels below the root
    top_k: int  # 2 or more: a tree of width 1 is a chain
    total_tokens: int  # the root not counted


class ProposalProbs(enum.Enum):
    """What comes back of the distributions that tokens were drawn from."""

    NONE = 0
    CHOSEN = 1  # of each drafted token its own probability
    TOP_M = 2  # of every node with children all that had any: what rejection sampling needs


@dataclasses.dataclass(frozen=True)
class Sampling:
    """Drafts are drawn from softmax(logits / temperature) over the `top_m` likeliest tokens."""

    temperature: float  # above 0
    top_m: int = 0  # 0: the server's default
    seed: int = 0  # equal seeds, rows and calls give equal draws
    proposal_probs: ProposalProbs = ProposalProbs.NONE


@dataclasses.dataclass(frozen=True)
class SessionOptions:
    """How a session is to be drafted for."""

    max_k: int = 0  # 0: the server's limit
    tree: TreeShape | None = None  # None: a chain
    sampling: Sampling | None = None  # None: greedy
    ancestor_mask: bool = False  # Proposal.ancestor_mask comes from the server
    links: bool = False  # so do first_child and next_sibling
    adaptive_k: bool = False  # the server may draft fewer than k where more is not worth its time
    acceptance_detail: bool = False  # AcceptanceRecord lists its steps one by one


@dataclasses.dataclass(frozen=True)
class Fork:
    """Begins a session with the first `length` rows of another, open and idle one."""

    session_id: str
    length: int


@dataclasses.dataclass(frozen=True)
class VerifyCost:
    """What one verification by the target took; adaptive k weighs its choice against it."""

    seconds: float  # above 0
    draft_tokens: int  # that it verified; 0: a step without a draft


@dataclasses.dataclass(frozen=True)
class KChoice:
    """What adaptive k promised itself of a round, by the session's running estimates."""

    k: int
    expected_tokens: float  # committed by the round, bonus included
    draft_seconds: float
    verify_seconds: float
    exploring: bool  # chosen to learn how deep drafts fare, not because it promised most
