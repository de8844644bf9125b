"""Each prompt twice, plain and with drafts: are the texts the same, and what did drafting gain?

The same text is promised, with one honest exception: a forward over several tokens adds numbers up
in another order than forwards over one, so where two tokens are as good as equally likely, plain
and drafted decoding may choose differently. Such a place is looked at: only a gap between the two
best logits below `TIE_GAP` makes it a tie, and it is shown.
"""

from __future__ import annotations

import dataclasses
import math

import torch
from aerie_draft.transformers import Summary, TargetWorker

# fp32 logits of the demo's target differ by about 1e-4 between the two ways to run it.
TIE_GAP = 1e-3


@dataclasses.dataclass
class Comparison:
    """One prompt, both ways."""

    prompt: str
    plain: Summary
    drafted: Summary
    first_difference: int | None  # index of the first token that differs
    gap: float | None  # between the two best logits there

    @property
    def verdict(self) -> str:
        if self.first_difference is None:
            return "yes"
        # Written so that a NaN is no tie.
        return "tie" if self.gap is not None and self.gap < TIE_GAP else "no"


def compare(
    worker: TargetWorker,
    model,
    prompt: str,
    max_new_tokens: int,
    on_round=None,
    plain: Summary | None = None,
):
    """Decodes `prompt` with drafts and, unless it is given, plainly.

    `on_round` sees the drafted rounds as they come.
    """
    prompt_ids = worker.encode_chat(prompt)
    drafted = worker.generate(prompt_ids, max_new_tokens)
    for made in drafted:
        if on_round is not None:
            on_round(made)
    if plain is None:
        plain = decode_plainly(worker, prompt, max_new_tokens)
    at = _first_difference(plain.tokens, drafted.summary.tokens)
    gap = None
    if at is not None:
        gap = _gap(model, prompt_ids + plain.tokens[:at])
    return Comparison(prompt, plain, drafted.summary, at, gap)


def decode_plainly(worker: TargetWorker, prompt: str, max_new_tokens: int) -> Summary:
    generation = worker.generate_plain(worker.encode_chat(prompt), max_new_tokens)
    for _ in generation:
        pass
    return generation.summary


@dataclasses.dataclass
class Totals:
    """The sums over all prompts; what --json writes."""

    prompts: int
    texts_equal: int
    ties: int
    rounds: int
    accept_length: float
    acceptance_by_position: list[float]
    tok_s_plain: float
    tok_s_aerie: float
    draft_ms_p50: float
    draft_ms_p99: float
    missed_rounds: int
    counts_agree: bool  # the server's acceptance records against the worker's own count

    @property
    def texts_differ(self) -> int:
        return self.prompts - self.texts_equal - self.ties


def total(comparisons: list[Comparison]) -> Totals:
    drafted = [c.drafted for c in comparisons]
    rounds = sum(s.rounds for s in drafted)
    accepted = sum(s.accepted for s in drafted)
    milliseconds = [1000 * t for s in drafted for t in s.server_seconds]
    proposed_at = _sum_by_position(s.proposed_by_position for s in drafted)
    accepted_at = _sum_by_position(s.accepted_by_position for s in drafted)
    return Totals(
        prompts=len(comparisons),
        texts_equal=sum(c.verdict == "yes" for c in comparisons),
        ties=sum(c.verdict == "tie" for c in comparisons),
        rounds=rounds,
        accept_length=1 + accepted / rounds if rounds else 1.0,
        acceptance_by_position=[a / p for a, p in zip(accepted_at, proposed_at)],
        tok_s_plain=_tokens_per_second([c.plain for c in comparisons]),
        tok_s_aerie=_tokens_per_second(drafted),
        draft_ms_p50=percentile(milliseconds, 50),
        draft_ms_p99=percentile(milliseconds, 99),
        missed_rounds=sum(s.missed_rounds for s in drafted),
        counts_agree=all(
            s.record is not None
            and s.record.spec_steps == s.rounds
            and s.record.accepted_draft_tokens == s.accepted
            for s in drafted
            if s.rounds
        ),
    )


def percentile(values: list[float], percent: float) -> float:
    """By nearest rank; NaN of nothing."""
    if not values:
        return math.nan
    rank = math.ceil(percent / 100 * len(values))
    return sorted(values)[max(rank, 1) - 1]


def _tokens_per_second(summaries: list[Summary]) -> float:
    seconds = sum(s.decode_seconds for s in summaries)
    return sum(len(s.tokens) - 1 for s in summaries) / seconds if seconds else 0.0


def _sum_by_position(lists) -> list[int]:
    sums: list[int] = []
    for counts in lists:
        sums.extend([0] * (len(counts) - len(sums)))
        for position, count in enumerate(counts):
            sums[position] += count
    return sums


def _first_difference(a: list[int], b: list[int]) -> int | None:
    for index, (x, y) in enumerate(zip(a, b)):
        if x != y:
            return index
    return None if len(a) == len(b) else min(len(a), len(b))


@torch.inference_mode()
def _gap(model, ids: list[int]) -> float:
    logits = model(torch.tensor([ids])).logits[0, -1].float()
    best = logits.topk(2).values
    return float(best[0] - best[1])
