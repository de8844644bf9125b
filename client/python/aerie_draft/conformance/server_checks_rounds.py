"""Rounds: what a proposal is made of, and that what was guessed or taken back leaves no trace."""

from __future__ import annotations

import math
import threading

from aerie_draft._proto import draft_pb2
from aerie_draft.conformance.probe import (
    Broken,
    CheckList,
    Code,
    Line,
    NotSeen,
    Probe,
    Refused,
    expect_same,
)
from aerie_draft.conformance.server_checks_open import expect

CHECKS = CheckList()
pb = draft_pb2


def _depths(tree: pb.DraftTree) -> list[int]:
    depths: list[int] = []
    for parent in tree.parents:
        depths.append(1 if parent == 0 else depths[parent - 1] + 1)
    return depths


def _check_tree(probe: Probe, answer: pb.DraftResponse, k: int, what: str) -> None:
    """What holds of every proposal."""
    tree, remedy = answer.tree, "see DraftTree in the contract"
    count = len(tree.token_ids)
    lists = (tree.parents, tree.log_probs, tree.positions)
    expect(
        all(len(values) == count for values in lists),
        f"{what}: {count} tokens with {[len(v) for v in lists]} parents, log_probs, positions",
        "one each of every token", remedy,
    )
    expect(count <= k, f"{what}: {count} tokens for k {k}", "at most k", remedy)
    if count < k and not answer.no_draft_reason:
        raise Broken(f"{what}: {count} tokens for k {k} and no reason", "no_draft_reason", remedy)
    for i, (token, parent) in enumerate(zip(tree.token_ids, tree.parents)):
        expect(
            token < probe.drafter.vocab_size, f"{what}: token id {token}",
            f"0..{probe.drafter.vocab_size - 1}, target ids", "map draft ids to target ids",
        )
        expect(parent <= i, f"{what}: parents[{i}] is {parent}", f"at most {i}", remedy)
    places = [answer.length + depth for depth in _depths(tree)]
    expect(
        list(tree.positions) == places, f"{what}: positions {list(tree.positions)}", f"{places}",
        "count from the newest token, which is at position `length`",
    )
    good = all(math.isfinite(p) and p <= 1e-4 for p in tree.log_probs)
    expect(
        good, f"{what}: log_probs {list(tree.log_probs)}", "finite logarithms of probabilities",
        "normalise over the draft vocabulary",
    )
    expect(bool(answer.method), f"{what}: no method", "how tokens were chosen", "fill it in")


@CHECKS.add("S-PROPOSAL")
def proposal(probe: Probe) -> None:
    line = probe.line(31)
    for k in sorted({1, probe.k, probe.limits.max_k}):
        answer = line.advance(3, k)
        _check_tree(probe, answer, k, f"k {k}")
        tree = answer.tree
        expect(
            len(tree.token_ids) == k and list(tree.parents) == list(range(k)),
            f"{len(tree.token_ids)} tokens with parents {list(tree.parents)} for k {k}",
            "a chain of k tokens", "draft what was asked for, or say why not",
        )
        expect(answer.seq == line.seq, f"seq {answer.seq}", f"{line.seq}, the call's", "repeat it")
    line.close()


@CHECKS.add("S-K-ZERO")
def k_zero(probe: Probe) -> None:
    line = probe.line(32)
    answer = line.advance(5, 0)
    expect(
        not answer.tree.token_ids
        and answer.no_draft_reason == pb.NO_DRAFT_REASON_NOT_ASKED,
        f"{len(answer.tree.token_ids)} tokens and reason {answer.no_draft_reason} for k 0",
        "none, NOT_ASKED", "commit without drafting",
    )
    expect_same(line.advance(2, probe.k), line.fresh(probe.k), "behind a k of 0", "commit the rows")
    line.close()


@CHECKS.add("S-MAX-K")
def max_k(probe: Probe) -> None:
    if probe.limits.max_k < 2:
        raise NotSeen("the server's max_k is 1")
    line = probe.line(33, options=pb.SessionOptions(max_k=1))
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
                f"accepted {told} of a proposal of which {keep} tokens came back", str(keep),
                "compare the new tokens with the last proposal",
            )
        counts.append(keep)
    return counts


@CHECKS.add("S-ACCEPTED")
def accepted(probe: Probe) -> None:
    line = probe.line(34)
    first = line.advance(4, probe.k)
    expect(
        not first.HasField("accepted"), f"accepted {first.accepted} without a proposal before",
        "unset", "judge proposals only",
    )
    line.close()
    line = probe.line(35)
    _ladder(line, probe.k, probe.k + 2)
    # What the worker says is its own matter.
    at = line.length
    request = probe.request(line.id, at, [1], line.sample.rows(at, at + 1), 1)
    request.accepted = 99
    told = probe.call("Draft", request)
    expect(
        told.accepted <= probe.k, f"accepted {told.accepted} as the worker claimed",
        "the server's own count", "take the worker's number for statistics only",
    )
    line.close()


@CHECKS.add("S-CLOSE")
def close(probe: Probe) -> None:
    line = probe.line(36)
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
        str(len(counts)), remedy,
    )
    by_sum = sum(n * count for n, count in enumerate(histogram))
    # Of the proposal before the last a coincidence may have kept some.
    least, most = sum(counts), sum(counts) + probe.k
    expect(
        record.num_accepted_draft_tokens == by_sum and least <= by_sum <= most,
        f"{record.num_accepted_draft_tokens} accepted tokens, {by_sum} by the histogram",
        f"{least}", remedy,
    )
    expect(
        record.num_draft_tokens >= by_sum and record.num_draft_tokens == probe.k * len(counts),
        f"{record.num_draft_tokens} draft tokens of {len(counts)} judged proposals of {probe.k}",
        str(probe.k * len(counts)), remedy,
    )


@CHECKS.add("S-ROLLBACK")
def rollback(probe: Probe) -> None:
    for keep in (6, 9, 1):
        line, other = probe.line(37 + keep), probe.sample(90 + keep)
        line.advance(12, probe.k)
        tokens, rows = other.tokens(keep, keep + 4), other.rows(keep, keep + 4)
        answer = probe.draft(line.id, keep, tokens, rows, probe.k, line.seq + 1)
        expect(
            answer.length == keep + 4, f"length {answer.length}", str(keep + 4),
            "replace the rows from base_length on",
        )
        row_bytes = probe.width * probe.dtype.size
        line.tokens = line.tokens[:keep] + tokens
        line.rows = line.rows[: keep * row_bytes] + rows
        expect_same(
            answer, line.fresh(probe.k), f"rows taken back to row {keep} and others sent",
            "forget what was taken back",
        )
        line.close()


@CHECKS.add("S-REPLAY")
def replay(probe: Probe) -> None:
    for seed in (41, 42):
        line = probe.line(seed)
        try:
            _ladder(line, probe.k, 2 * probe.k)
        except Broken as broken:
            raise NotSeen(f"rounds do not work: {broken.seen}") from None
        expect_same(
            line.advance(2, probe.k), line.fresh(probe.k), "after rounds with rejections",
            "forget what was guessed: only committed tokens with their rows stay",
        )
        line.close()


@CHECKS.add("S-ISOLATION")
def isolation(probe: Probe) -> None:
    def play(line: Line):
        return [line.advance(count, probe.k) for count in (9, 1, 2, 1, 3, 1)]

    quiet = probe.line(43)
    expected = play(quiet)
    quiet.close()
    stop = threading.Event()

    def disturb(seed: int) -> None:
        while not stop.is_set():
            try:
                noise = probe.line(seed)
                noise.advance(17, probe.k)
                bad = probe.request(noise.id, 17, [1], b"\0", 1)
                try:
                    probe.stub.Draft(bad, timeout=60)
                except Exception:  # what it gets is the matter of another rule
                    pass
                noise.advance(2, probe.k)
                noise.close()
            except (Refused, Broken):
                return

    crowd = [threading.Thread(target=disturb, args=(seed,)) for seed in (51, 52)]
    for thread in crowd:
        thread.start()
    try:
        for _ in range(2):
            line = probe.line(43)
            for number, (ours, theirs) in enumerate(zip(play(line), expected), 1):
                expect_same(
                    ours, theirs, f"round {number} beside other sessions",
                    "look for rows, pages or slots of one session used for another",
                )
            line.close()
    finally:
        stop.set()
        for thread in crowd:
            thread.join()


@CHECKS.add("S-STATELESS")
def stateless(probe: Probe) -> None:
    line = probe.line(44)
    kept = line.advance(7, probe.k)
    once = probe.draft("", 0, line.tokens, line.rows, probe.k)
    expect_same(once, kept, "a call with a manifest", "draft as a session would")
    request = probe.request("", 1, line.tokens, line.rows, probe.k)
    probe.refused("Draft", request, Code.INVALID_ARGUMENT, "base_length 1 without a session")
    line.close()


@CHECKS.add("S-TREE")
def tree(probe: Probe) -> None:
    if probe.limits.max_k < 4:
        raise NotSeen(f"the server's max_k is {probe.limits.max_k}, too few for a tree")
    shape = pb.TreeShape(depth=3, top_k=2, total_tokens=min(6, probe.limits.max_k))
    extras = pb.TreeExtras(ancestor_mask=True, links=True)
    line = probe.line(45, options=pb.SessionOptions(tree=shape, extras=extras))
    expect(line.options.tree == shape, f"tree {line.options.tree}", f"{shape}", "tell what is in force")
    answer = line.advance(6, shape.total_tokens)
    _check_tree(probe, answer, shape.total_tokens, "a tree")
    made = answer.tree
    parents = list(made.parents)
    children = [parents.count(node) for node in range(len(parents) + 1)]
    expect(
        max(_depths(made)) <= shape.depth and max(children) <= shape.top_k,
        f"{max(_depths(made))} levels, up to {max(children)} children",
        f"{shape.depth} and {shape.top_k} at most", "keep to the shape",
    )
    nodes = len(parents) + 1
    sees = [1]
    for node, parent in enumerate(parents, 1):
        sees.append(sees[parent] | 1 << node)
    mask = b"".join(row.to_bytes((nodes + 7) // 8, "little") for row in sees)
    expect(
        made.ancestor_mask == mask, f"ancestor_mask {made.ancestor_mask.hex()}", mask.hex(),
        "set bit b of row a when b is a or an ancestor of a, lowest bit first",
    )
    first = [parents.index(node) + 1 if node in parents else -1 for node in range(nodes)]
    expect(
        list(made.first_child) == first, f"first_child {list(made.first_child)}", f"{first}",
        "number nodes from the root, which is 0",
    )
    following = [
        next((n for n in range(node + 1, nodes) if node and parents[n - 1] == parents[node - 1]), -1)
        for node in range(nodes)
    ]
    expect(
        list(made.next_sibling) == following, f"next_sibling {list(made.next_sibling)}",
        f"{following}", "number nodes from the root, which is 0",
    )
    # The newest node's path, so that a server that judges in order of tokens finds another count.
    path, node = [], nodes - 1
    while node:
        path.insert(0, made.token_ids[node - 1])
        node = parents[node - 1]
    wrong = (path[-1] + 1) % probe.drafter.vocab_size
    told = line.advance(0, 1, [*path, wrong])
    least = len(path)
    expect(
        least <= told.accepted <= shape.depth, f"accepted {told.accepted} of a path of {least}",
        str(least), "follow the tokens from the root",
    )
    line.close()


@CHECKS.add("S-SAMPLING")
def sampling(probe: Probe) -> None:
    asked = pb.Sampling(temperature=1.0, top_m=8, seed=5, proposal_probs=pb.PROPOSAL_PROBS_TOP_M)
    lines = [probe.line(46, options=pb.SessionOptions(sampling=asked)) for _ in range(2)]
    answers = [line.advance(6, probe.k) for line in lines]
    _check_tree(probe, answers[0], probe.k, "a sampled chain")
    made, remedy = answers[0].tree, "return the q that tokens were drawn from"
    by_node = {d.node: d for d in made.distributions}
    for i, (token, parent) in enumerate(zip(made.token_ids, made.parents)):
        drawn_from = by_node.get(parent)
        if drawn_from is None:
            raise Broken(f"no distribution of node {parent}", "one, as it has a child", remedy)
        probs = dict(zip(drawn_from.token_ids, drawn_from.probs))
        expect(
            abs(sum(probs.values()) - 1) <= 1e-3 and len(probs) <= 8 and token in probs,
            f"q of node {parent}: {probs}, from which {token} was drawn",
            "at most top_m tokens that sum to 1, the drawn one among them", remedy,
        )
        expect(
            len(made.chosen_probs) > i and abs(made.chosen_probs[i] - probs[token]) <= 1e-3,
            f"chosen_probs {list(made.chosen_probs)} with {probs[token]} in q of token {i + 1}",
            "q of each token", remedy,
        )
    expect_same(
        answers[0], answers[1], "two sessions of one seed", "let a draw depend on seed and place"
    )
    for line in lines:
        line.close()
    if max(max(d.probs) for d in made.distributions) > 0.9:
        return
    others = set()
    for seed in range(8):
        again = pb.Sampling(temperature=1.0, top_m=8, seed=100 + seed)
        line = probe.line(46, options=pb.SessionOptions(sampling=again))
        others.add(tuple(line.advance(6, probe.k).tree.token_ids))
        line.close()
    expect(len(others) > 1, "one draft for eight seeds", "draws that depend on the seed", "use it")
