"""One table: every way to draft, on the same prompts, by accept length and by speed.

Chains of k tokens, dynamic trees and a k that adapts. The target's own text is decoded plainly once
and every way's text is held against it. A tree of depth d contains the chain of d tokens unless the
nodes run out, so its accept length is at least about that of the chain.

What a reader would get wrong: accept length is a property of the drafter and the prompts, tokens
per second one of this machine. Here the target is so small that a tree's many nodes cost more than
they bring; on a large target verifying 16 tokens takes hardly longer than verifying one.
"""

from __future__ import annotations

import dataclasses

from aerie_draft import DraftClient, SessionOptions, TreeShape
from aerie_draft.transformers import TargetWorker
from comparison import Totals, compare, decode_plainly, total


@dataclasses.dataclass(frozen=True)
class Way:
    mode: str  # chain, tree or adaptive
    k: int  # draft tokens a round, at most
    options: SessionOptions = SessionOptions()

    @property
    def name(self) -> str:
        tree = self.options.tree
        if tree is None:
            return f"{self.mode} k={self.k}"
        return f"tree depth={tree.depth} top-k={tree.top_k} total={tree.total_tokens}"


def _tree(depth: int, top_k: int, total_tokens: int) -> Way:
    return Way("tree", total_tokens, SessionOptions(tree=TreeShape(depth, top_k, total_tokens)))


WAYS = (
    *(Way("chain", k) for k in range(1, 9)),
    _tree(2, 4, 8),
    _tree(3, 4, 12),
    _tree(5, 4, 16),
    _tree(6, 8, 32),
    Way("adaptive", 8, SessionOptions(adaptive_k=True)),
)
MOST_NODES = max(way.k for way in WAYS)


@dataclasses.dataclass(frozen=True)
class Row:
    """What --json writes of one way."""

    mode: str
    k: int
    depth: int | None
    top_k: int | None
    total: int | None
    accept_length: float
    acceptance_by_position: list[float]
    mean_draft_tokens: float  # of a round with a draft
    tok_s: float
    tok_s_plain: float
    draft_ms_p50: float
    rounds: int
    texts_equal: int
    ties: int
    texts_differ: int


def sweep(client: DraftClient, model, tokenizer, prompts, max_new_tokens: int, show) -> list[Row]:
    """All ways in turn; `show` gets each row as it is made."""
    plain_worker = TargetWorker(model, tokenizer, client, 1)
    plain = [decode_plainly(plain_worker, prompt, max_new_tokens) for prompt in prompts]
    rows = []
    for way in WAYS:
        worker = TargetWorker(model, tokenizer, client, way.k, options=way.options)
        compared = [
            compare(worker, model, prompt, max_new_tokens, plain=text)
            for prompt, text in zip(prompts, plain)
        ]
        rows.append(_row(way, total(compared), compared))
        show(way, rows[-1])
    return rows


def _row(way: Way, totals: Totals, compared) -> Row:
    tree = way.options.tree
    drafted = sum(c.drafted.draft_tokens for c in compared)
    return Row(
        mode=way.mode,
        k=way.k,
        depth=tree.depth if tree else None,
        top_k=tree.top_k if tree else None,
        total=tree.total_tokens if tree else None,
        accept_length=totals.accept_length,
        acceptance_by_position=totals.acceptance_by_position,
        mean_draft_tokens=drafted / totals.rounds if totals.rounds else 0.0,
        tok_s=totals.tok_s_aerie,
        tok_s_plain=totals.tok_s_plain,
        draft_ms_p50=totals.draft_ms_p50,
        rounds=totals.rounds,
        texts_equal=totals.texts_equal,
        ties=totals.ties,
        texts_differ=totals.texts_differ,
    )
