"""What a generation tells: its rounds as they come, and the sums at its end."""

from __future__ import annotations

import dataclasses

from aerie_draft.values import AcceptanceRecord, Proposal


@dataclasses.dataclass(frozen=True)
class Round:
    """The tokens of one target forward, in order."""

    tokens: list[int]
    accepted: list[bool]  # of each token whether the drafter had proposed it
    proposed: int  # draft tokens that were verified


@dataclasses.dataclass
class Summary:
    """The sums over one generation. Accept length counts the bonus token, as everybody does."""

    prompt_tokens: int = 0
    tokens: list[int] = dataclasses.field(default_factory=list)  # generated
    forwards: int = 0  # of the target, prompt included
    rounds: int = 0  # forwards that verified a draft
    draft_tokens: int = 0  # that they verified
    # A position is a level of the draft, however many tokens a tree has there.
    proposed_by_position: list[int] = dataclasses.field(default_factory=list)
    accepted_by_position: list[int] = dataclasses.field(default_factory=list)
    missed_rounds: int = 0  # went without a draft because of the server
    resyncs: int = 0
    prefill_seconds: float = 0.0  # until the first token
    decode_seconds: float = 0.0  # from the first token to the last
    target_seconds: float = 0.0  # of these, in target forwards
    draft_seconds: float = 0.0  # of these, in draft calls
    server_seconds: list[float] = dataclasses.field(default_factory=list)  # of each draft call
    record: AcceptanceRecord | None = None  # the server's own count; None without a server

    @property
    def accepted(self) -> int:
        return sum(self.accepted_by_position)

    @property
    def accept_length(self) -> float:
        """1 + accepted / rounds; 1 without a round."""
        return 1 + self.accepted / self.rounds if self.rounds else 1.0

    @property
    def acceptance_by_position(self) -> list[float]:
        """Of the tokens proposed at each position, the share that was kept."""
        return [a / p for a, p in zip(self.accepted_by_position, self.proposed_by_position)]

    @property
    def tokens_per_second(self) -> float:
        """Tokens after the first, over the time that they took, drafting included."""
        return (len(self.tokens) - 1) / self.decode_seconds if self.decode_seconds else 0.0

    def count_proposal(self, proposal: Proposal) -> None:
        self.server_seconds.append(proposal.timing.total)

    def count_verified(self, proposed: int, levels: int, accepted: int) -> None:
        """One verified draft of `proposed` tokens on `levels` levels; the text keeps `accepted`."""
        if proposed == 0:
            return
        self.rounds += 1
        self.draft_tokens += proposed
        for counts, n in (
            (self.proposed_by_position, levels),
            (self.accepted_by_position, accepted),
        ):
            counts.extend([0] * (levels - len(counts)))
            for position in range(n):
                counts[position] += 1
