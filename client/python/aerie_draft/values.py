"""What goes in and comes out of the client: plain values without a trace of protobuf."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from aerie_draft.dtypes import DType
from aerie_draft.wiring import Capture


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

    @property
    def row_width(self) -> int:
        """Elements of one aux hidden state."""
        return len(self.captures) * self.hidden_size


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


@dataclasses.dataclass(frozen=True)
class Limits:
    """What the server takes. 0 stands for a limit that it did not state."""

    max_k: int
    max_rows_per_call: int
    max_message_bytes: int
    max_sessions: int
    max_context: int
    session_lease: float  # seconds


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


@dataclasses.dataclass(frozen=True)
class Proposal:
    """What the drafter proposes to follow the committed tokens."""

    tokens: tuple[int, ...]  # target ids
    parents: tuple[int, ...]  # node number of each token's parent; a chain has 0, 1, 2, ...
    log_probs: tuple[float, ...]  # natural log, over the draft vocabulary
    length: int  # rows that the session holds now
    accepted: int | None  # of the previous proposal; None when there was none to judge
    no_draft_reason: str  # why there are fewer than k tokens, e.g. CONTEXT_LIMIT; empty otherwise
    method: str  # how the tokens were chosen, e.g. GREEDY_CHAIN
    timing: DraftTiming
    round_trip: float  # seconds from the first byte sent to the answer, seen from here
    calls: int  # wire calls that the rows took


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
