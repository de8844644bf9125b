"""What goes in and comes out of the client: plain values without a trace of protobuf."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from aerie_draft.dtypes import DType
from aerie_draft.options import KChoice
from aerie_draft.wiring import Capture


@dataclasses.dataclass(frozen=True)
class FusedFeatures:
    """What a worker's fc is: of the server's drafter, or the session is refused."""

    width: int  # of a row behind fc
    fc_digest: str  # as DrafterInfo.fc_digest


@dataclasses.dataclass(frozen=True)
class Manifest:
    """What a worker declares about its target and its captures."""

    target_id: str  # free text for the server's log
    num_layers: int
    hidden_size: int
    vocab_size: int
    captures: tuple[Capture, ...]  # in concatenation order
    dtype: DType  # of all hidden states of the session
    drafter: str = ""  # empty: the server's only one
    # Rows have been through the drafter's fc: see aerie_draft.fused. None: they are captures.
    fused: FusedFeatures | None = None

    @property
    def row_width(self) -> int:
        """Elements of one row: an aux hidden state, or what fc makes of it."""
        return self.fused.width if self.fused else len(self.captures) * self.hidden_size

    @property
    def row_bytes(self) -> int:
        """Bytes of one row on the wire."""
        return self.dtype.row_bytes(self.row_width)


@dataclasses.dataclass(frozen=True)
class Setting:
    """One effective setting of the server and where it came from."""

    name: str
    value: str
    source: str


@dataclasses.dataclass(frozen=True)
class DrafterInfo:
    """A drafter that the server holds, and what a manifest for it has to say."""

    name: str
    version: str
    captures: tuple[Capture, ...]
    target_num_layers: int
    target_hidden_size: int
    vocab_size: int
    draft_vocab_size: int
    hidden_size: int
    weight_bytes: int
    settings: tuple[Setting, ...]
    fc_digest: str = ""  # of the fc that workers may apply themselves; empty: they may not


@dataclasses.dataclass(frozen=True)
class Limits:
    """What the server takes. 0 stands for a limit that it did not state."""

    max_k: int
    max_rows_per_call: int
    max_message_bytes: int
    max_sessions: int
    max_context: int
    session_lease: float  # seconds
    kv_memory_bytes: int = 0  # draft KV of all sessions together
    kv_bytes_per_row: int = 0
    draft_window: int = 0  # rows that a draft looks back on beside the first draft_sink; 0: all
    draft_sink: int = 0
    max_batch_requests: int = 0  # of one message on a stream; 0: it does not know batches
    # Of one client; past them calls are refused for a while (Overloaded).
    max_rows_per_second_per_client: int = 0
    row_burst_per_client: int = 0  # that it may bring at once after a pause
    max_bytes_in_flight_per_client: int = 0  # of its requests that are not answered yet


@dataclasses.dataclass(frozen=True)
class ServerInfo:
    """What the server is and holds."""

    protocol_version: int
    version: str
    revision: str
    drafters: tuple[DrafterInfo, ...]
    limits: Limits
    dtypes: tuple[DType, ...]
    settings: tuple[Setting, ...]
    shared_memory: bool = False  # whether this client may leave rows in shared memory

    def drafter(self, name: str = "") -> DrafterInfo:
        """The drafter of this name; the only one when `name` is empty."""
        fitting = [d for d in self.drafters if not name or d.name == name]
        if len(fitting) != 1:
            raise ValueError(
                f"the server holds drafters {[d.name for d in self.drafters]}; expected exactly one"
                f"{f' called {name!r}' if name else ''}; name one of these"
            )
        return fitting[0]


@dataclasses.dataclass(frozen=True)
class DraftTiming:
    """Where the time of a call went on the server, in seconds."""

    queue: float = 0.0
    extend: float = 0.0
    step: float = 0.0
    total: float = 0.0


@dataclasses.dataclass(frozen=True, eq=False)
class ProposalDistribution:
    """What the children of a node were drawn from; tokens that are not in it had probability 0."""

    node: int  # 0: the root
    tokens: np.ndarray  # int64 target ids, likeliest first
    probs: np.ndarray  # float32, sum to 1


@dataclasses.dataclass(frozen=True, eq=False)
class Proposal:
    """What the drafter proposes to follow the committed tokens: a chain, or a tree.

    Node 0 is the root, the last committed token, which is not repeated here; node i is
    tokens[i - 1]. So lists by node, where they are given, are one longer than lists by token.
    """

    tokens: tuple[int, ...]  # target ids
    parents: tuple[int, ...]  # node number of each token's parent; a chain has 0, 1, 2, ...
    log_probs: tuple[float, ...]  # natural log, over the draft vocabulary
    positions: tuple[int, ...]  # in the sequence, of each token: the root's plus its depth
    length: int  # rows that the session holds now
    accepted: int | None  # of the previous proposal; None when there was none to judge
    no_draft_reason: str  # why there are fewer than k tokens, e.g. CONTEXT_LIMIT; empty otherwise
    method: str  # how the tokens were chosen, e.g. GREEDY_CHAIN
    timing: DraftTiming
    round_trip: float  # seconds from the first byte sent to the answer, seen from here
    calls: int  # wire calls that the rows took
    # With ProposalProbs.CHOSEN or TOP_M: of each token the probability with which it was drawn.
    chosen_probs: tuple[float, ...] = ()
    # With TOP_M, by node: of every node that has children.
    distributions: dict[int, ProposalDistribution] = dataclasses.field(default_factory=dict)
    # With SessionOptions.ancestor_mask, bool [nodes, nodes]: [a, b] when b is a or an ancestor of a.
    ancestor_mask: np.ndarray | None = None
    # With SessionOptions.links, by node, -1: none.
    first_child: tuple[int, ...] = ()
    next_sibling: tuple[int, ...] = ()
    k_choice: KChoice | None = None  # with SessionOptions.adaptive_k

    @property
    def depths(self) -> tuple[int, ...]:
        """Of each token its level; 1 for the root's children."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(1 if parent == 0 else depths[parent - 1] + 1)
        return tuple(depths)

    def accepted_by(self, continuation: Sequence[int]) -> int:
        """How many tokens of the path that the target took are in here."""
        node = accepted = 0
        for i, (token, parent) in enumerate(zip(self.tokens, self.parents)):
            if accepted == len(continuation):
                break
            # Parents precede children, so one scan finds each next node of the path.
            if parent == node and token == continuation[accepted]:
                node, accepted = i + 1, accepted + 1
        return accepted


@dataclasses.dataclass(frozen=True)
class AcceptanceRecord:
    """How the drafts of one session fared, as the server counted it."""

    acceptance_histogram: tuple[int, ...]  # [a]: proposals of which a tokens were kept
    accepted_draft_tokens: int
    draft_tokens: int  # proposed, over the judged proposals
    spec_steps: int  # judged proposals
    spec_tokens: int  # largest k proposed
    completion_tokens: int  # committed after the first proposal, bonus included
    unreported_drafts: int  # proposals whose outcome never came
    # [d]: judged proposals of d levels, which of a chain is its tokens. With acceptance_histogram
    # it tells acceptance by position.
    depth_histogram: tuple[int, ...] = ()
    # Of each judged proposal in order: tokens kept, and proposed. With acceptance_detail only, and
    # then of the first 16384.
    per_step_accepted: tuple[int, ...] = ()
    per_step_drafted: tuple[int, ...] = ()

    @property
    def mean_accept_length(self) -> float:
        """1 + accepted / steps: the bonus token counts. 0 without a judged proposal."""
        return 1 + self.accepted_draft_tokens / self.spec_steps if self.spec_steps else 0.0

    @property
    def acceptance_rate(self) -> float:
        """accepted / proposed, 0 .. 1. 0 without a judged proposal."""
        return self.accepted_draft_tokens / self.draft_tokens if self.draft_tokens else 0.0


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """How many leading tokens two sequences share."""
    count = 0
    for x, y in zip(a, b):
        if x != y:
            break
        count += 1
    return count
