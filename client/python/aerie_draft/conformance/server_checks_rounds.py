"""Rounds: what a proposal is made of, and that what was guessed or taken back leaves no trace."""

from __future__ import annotations

import math

from aerie_draft._proto import draft_pb2
from aerie_draft.conformance.lines import Line, Sample, expect_same
from aerie_draft.conformance.probe import (
    Broken,
    CheckList,
    Code,
    NotSeen,
    Probe,
)
from aerie_draft.conformance.server_checks_open import expect

CHECKS = CheckList()
pb = draft_pb2


def depths_of(tree: pb.DraftTree) -> list[int]:
    depths: list[int] = []
    for parent in tree.parents:
        depths.append(1 if parent == 0 else depths[parent - 1] + 1)
    return depths


def check_tree(probe: Probe, answer: pb.DraftResponse, k: int, what: str) -> None:
    """What holds of every proposal."""
    tree, remedy = answer.tree, "see DraftTree in the contract"
    count = len(tree.token_ids)
    lists = (tree.parents, tree.log_probs, tree.positions)
    expect(
        all(len(values) == count for values in lists),
        f"{what}: {count} tokens with {[len(v) for v in lists]} parents, log_probs, positions",
        "one each of every token",
        remedy,
    )
    expect(count <= k, f"{what}: {count} tokens for k {k}", "at most k", remedy)
    if count < k and not answer.no_draft_reason:
        raise Broken(f"{what}: {count} tokens for k {k} and no reason", "no_draft_reason", remedy)
    for i, (token, parent) in enumerate(zip(tree.token_ids, tree.parents)):
        expect(
            token < probe.drafter.vocab_size,
            f"{what}: token id {token}",
            f"0..{probe.drafter.vocab_size - 1}, target ids",
            "map draft ids to target ids",
        )
        expect(parent <= i, f"{what}: parents[{i}] is {parent}", f"at most {i}", remedy)
    places = [answer.length + depth for depth in depths_of(tree)]
    expect(
        list(tree.positions) == places,
        f"{what}: positions {list(tree.positions)}",
        f"{places}",
        "count from the newest token, which is at position `length`",
    )
    good = all(math.isfinite(p) and p <= 1e-4 for p in tree.log_probs)
    expect(
        good,
        f"{what}: log_probs {list(tree.log_probs)}",
        "finite logarithms of probabilities",
        "normalise over the draft vocabulary",
    )
    expect(bool(answer.method), f"{what}: no method", "how tokens were chosen", "fill it in")


@CHECKS.add("S-PROPOSAL")
def proposal(probe: Probe) -> None:
    line = Line(probe, 31)
    for k in sorted({1, probe.k, probe.limits.max_k}):
        answer = line.advance(3, k)
        check_tree(probe, answer, k, f"k {k}")
        tree = answer.tree
        expect(
            len(tree.token_ids) == k and list(tree.parents) == list(range(k)),
            f"{len(tree.token_ids)} tokens with parents {list(tree.parents)} for k {k}",
            "a chain of k tokens",
            "draft what was asked for, or say why not",
        )
        expect(answer.seq == line.seq, f"seq {answer.seq}", f"{line.seq}, the call's", "repeat it")
    line.close()


@CHECKS.add("S-K-ZERO")
def k_zero(probe: Probe) -> None:
    line = Line(probe, 32)
    answer = line.advance(5, 0)
    expect(
        not answer.tree.token_ids and answer.no_draft_reason == pb.NO_DRAFT_REASON_NOT_ASKED,
        f"{len(answer.tree.token_ids)} tokens and reason {answer.no_draft_reason} for k 0",
        "none, NOT_ASKED",
        "commit without drafting",
    )
    expect_same(line.advance(2, probe.k), line.fresh(probe.k), "behind a k of 0", "commit the rows")
    line.close()


@CHECKS.add("S-MAX-K")
def max_k(probe: Probe) -> None:
    if probe.limits.max_k < 2:
        raise NotSeen("the server's max_k is 1")
    line = Line(probe, 33, options=pb.SessionOptions(max_k=1))
    expect(line.options.max_k == 1, f"options.max_k {line.options.max_k}", "1, as asked", "keep it")
    line.advance(3, 1)
    request = probe.request(line.id, 3, [1], line.sample.rows(3, 4), 2)
    probe.refused("Draft", request, Code.INVALID_ARGUMENT, "k 2 in a session of max_k 1")
    line.close()


def _ladder(line: Line, k: int, rounds: int) -> list[int]:
    """Rounds of which 0, 1, 2 .. of the proposal are kept; what each has to count as accepted."""
    answer = line.advance(6, k)
    counts = []
    for number in range(rounds):
        tokens = list(answer.tree.token_ids)
        keep = min(number % (len(tokens) + 1), len(tokens))
        follows = tokens[keep] if keep < len(tokens) else tokens[0]
        bonus = (follows + 1) % line.probe.drafter.vocab_size
        answer = line.advance(0, k, [*tokens[:keep], bonus])
        told = answer.accepted if answer.HasField("accepted") else None
        if told != keep:
            raise Broken(
                f"accepted {told} of a proposal of which {keep} tokens came back",
                str(keep),
                "compare the new tokens with the last proposal",
            )
        counts.append(keep)
    return counts


@CHECKS.add("S-ACCEPTED")
def accepted(probe: Probe) -> None:
    line = Line(probe, 34)
    first = line.advance(4, probe.k)
    expect(
        not first.HasField("accepted"),
        f"accepted {first.accepted} without a proposal before",
        "unset",
        "judge proposals only",
    )
    line.close()
    line = Line(probe, 35)
    _ladder(line, probe.k, probe.k + 2)
    # What the worker says is its own matter.
    at = line.length
    request = probe.request(line.id, at, [1], line.sample.rows(at, at + 1), 1)
    request.accepted = 99
    told = probe.call("Draft", request)
    expect(
        told.accepted <= probe.k,
        f"accepted {told.accepted} as the worker claimed",
        "the server's own count",
        "take the worker's number for statistics only",
    )
    line.close()


@CHECKS.add("S-CLOSE")
def close(probe: Probe) -> None:
    line = Line(probe, 36)
    counts = _ladder(line, probe.k, probe.k + 1)
    last = line.advance(1, probe.k)
    counts.append(0)  # of the proposal before, whose first token the sample does not have
    tokens = list(last.tree.token_ids)
    record = line.close(tokens).acceptance
    counts.append(len(tokens))
    histogram = list(record.acceptance_histogram)
    remedy = "judge the last proposal by final_token_ids, and count each once"
    expect(
        record.num_spec_steps == len(counts) == sum(histogram),
        f"{record.num_spec_steps} judged proposals, {sum(histogram)} in the histogram",
        str(len(counts)),
        remedy,
    )
    by_sum = sum(n * count for n, count in enumerate(histogram))
    # Of the proposal before the last a coincidence may have kept some.
    least, most = sum(counts), sum(counts) + probe.k
    expect(
        record.num_accepted_draft_tokens == by_sum and least <= by_sum <= most,
        f"{record.num_accepted_draft_tokens} accepted tokens, {by_sum} by the histogram",
        f"{least}",
        remedy,
    )
    expect(
        record.num_draft_tokens >= by_sum and record.num_draft_tokens == probe.k * len(counts),
        f"{record.num_draft_tokens} draft tokens of {len(counts)} judged proposals of {probe.k}",
        str(probe.k * len(counts)),
        remedy,
    )


@CHECKS.add("S-ROLLBACK")
def rollback(probe: Probe) -> None:
    for keep in (6, 9, 1):
        line, other = Line(probe, 37 + keep), Sample(probe, 90 + keep)
        line.advance(12, probe.k)
        tokens, rows = other.tokens(keep, keep + 4), other.rows(keep, keep + 4)
        answer = probe.draft(line.id, keep, tokens, rows, probe.k, line.seq + 1)
        expect(
            answer.length == keep + 4,
            f"length {answer.length}",
            str(keep + 4),
            "replace the rows from base_length on",
        )
        row_bytes = probe.width * probe.dtype.size
        line.tokens = line.tokens[:keep] + tokens
        line.rows = line.rows[: keep * row_bytes] + rows
        expect_same(
            answer,
            line.fresh(probe.k),
            f"rows taken back to row {keep} and others sent",
            "forget what was taken back",
        )
        line.close()


@CHECKS.add("S-REPLAY")
def replay(probe: Probe) -> None:
    for seed in (41, 42):
        line = Line(probe, seed)
        try:
            _ladder(line, probe.k, 2 * probe.k)
        except Broken as broken:
            raise NotSeen(f"rounds do not work: {broken.seen}") from None
        expect_same(
            line.advance(2, probe.k),
            line.fresh(probe.k),
            "after rounds with rejections",
            "forget what was guessed: only committed tokens with their rows stay",
        )
        line.close()
