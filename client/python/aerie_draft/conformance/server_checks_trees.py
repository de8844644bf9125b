"""Trees and sampled drafts: their shape, and the forms of it that verifiers take."""

from __future__ import annotations

from aerie_draft._proto import draft_pb2
from aerie_draft.conformance.lines import Line, expect_same
from aerie_draft.conformance.probe import Broken, CheckList, NotSeen, Probe
from aerie_draft.conformance.server_checks_open import expect
from aerie_draft.conformance.server_checks_rounds import check_tree, depths_of

CHECKS = CheckList()
pb = draft_pb2


@CHECKS.add("S-TREE")
def tree(probe: Probe) -> None:
    if probe.limits.max_k < 4:
        raise NotSeen(f"the server's max_k is {probe.limits.max_k}, too few for a tree")
    shape = pb.TreeShape(depth=3, top_k=2, total_tokens=min(6, probe.limits.max_k))
    extras = pb.TreeExtras(ancestor_mask=True, links=True)
    line = Line(probe, 45, options=pb.SessionOptions(tree=shape, extras=extras))
    expect(
        line.options.tree == shape, f"tree {line.options.tree}", f"{shape}", "tell what is in force"
    )
    answer = line.advance(6, shape.total_tokens)
    check_tree(probe, answer, shape.total_tokens, "a tree")
    made = answer.tree
    parents = list(made.parents)
    children = [parents.count(node) for node in range(len(parents) + 1)]
    expect(
        max(depths_of(made)) <= shape.depth and max(children) <= shape.top_k,
        f"{max(depths_of(made))} levels, up to {max(children)} children",
        f"{shape.depth} and {shape.top_k} at most",
        "keep to the shape",
    )
    nodes = len(parents) + 1
    sees = [1]
    for node, parent in enumerate(parents, 1):
        sees.append(sees[parent] | 1 << node)
    mask = b"".join(row.to_bytes((nodes + 7) // 8, "little") for row in sees)
    expect(
        made.ancestor_mask == mask,
        f"ancestor_mask {made.ancestor_mask.hex()}",
        mask.hex(),
        "set bit b of row a when b is a or an ancestor of a, lowest bit first",
    )
    first = [parents.index(node) + 1 if node in parents else -1 for node in range(nodes)]
    expect(
        list(made.first_child) == first,
        f"first_child {list(made.first_child)}",
        f"{first}",
        "number nodes from the root, which is 0",
    )
    following = [
        next(
            (n for n in range(node + 1, nodes) if node and parents[n - 1] == parents[node - 1]), -1
        )
        for node in range(nodes)
    ]
    expect(
        list(made.next_sibling) == following,
        f"next_sibling {list(made.next_sibling)}",
        f"{following}",
        "number nodes from the root, which is 0",
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
        least <= told.accepted <= shape.depth,
        f"accepted {told.accepted} of a path of {least}",
        str(least),
        "follow the tokens from the root",
    )
    line.close()


@CHECKS.add("S-SAMPLING")
def sampling(probe: Probe) -> None:
    asked = pb.Sampling(temperature=1.0, top_m=8, seed=5, proposal_probs=pb.PROPOSAL_PROBS_TOP_M)
    lines = [Line(probe, 46, options=pb.SessionOptions(sampling=asked)) for _ in range(2)]
    answers = [line.advance(6, probe.k) for line in lines]
    check_tree(probe, answers[0], probe.k, "a sampled chain")
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
            "at most top_m tokens that sum to 1, the drawn one among them",
            remedy,
        )
        expect(
            len(made.chosen_probs) > i and abs(made.chosen_probs[i] - probs[token]) <= 1e-3,
            f"chosen_probs {list(made.chosen_probs)} with {probs[token]} in q of token {i + 1}",
            "q of each token",
            remedy,
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
        line = Line(probe, 46, options=pb.SessionOptions(sampling=again))
        others.add(tuple(line.advance(6, probe.k).tree.token_ids))
        line.close()
    expect(len(others) > 1, "one draft for eight seeds", "draws that depend on the seed", "use it")
