"""What the target keeps of a proposal: the cases that the C++ client is checked against too."""

import dataclasses
import json
import pathlib

import numpy as np
import pytest
from aerie_draft import verify

CASES = json.loads(
    (pathlib.Path(__file__).parents[2] / "testing" / "verify_cases.json").read_text()
)


@dataclasses.dataclass(frozen=True)
class Distribution:
    tokens: list[int]
    probs: list[float]


@dataclasses.dataclass(frozen=True)
class Tree:
    tokens: list[int]
    parents: list[int]
    distributions: dict[int, Distribution]


def tree_of(case):
    return Tree(
        case["tokens"],
        case["parents"],
        {d["node"]: Distribution(d["tokens"], d["probs"]) for d in case.get("distributions", [])},
    )


class Uniforms:
    """Gives the numbers of a case and counts them."""

    def __init__(self, numbers):
        self.numbers = list(numbers)

    def __call__(self):
        return self.numbers.pop(0)


def judge(case, uniforms):
    if case["rule"] == "greedy":
        return verify.verify_greedy(tree_of(case), case["argmax"])
    rule = getattr(verify, f"verify_{case['rule']}")
    # None stands for NaN, which JSON lacks.
    return rule(tree_of(case), np.array(case["target"], dtype=np.float32), uniforms)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_cases(case):
    uniforms = Uniforms(case.get("uniforms", []))
    if "error" in case:
        with pytest.raises(ValueError, match="^[^;]*.*;.*;") as failure:
            judge(case, uniforms)
        assert case["error"] in str(failure.value)
        return
    verdict = judge(case, uniforms)
    kept = [case["tokens"][node - 1] for node in case["path"]]
    assert verdict == verify.TreeVerdict(tuple(case["path"]), case["bonus"], (*kept, case["bonus"]))
    assert verdict.accepted == len(kept)
    assert uniforms.numbers == []


def test_the_targets_rows_are_left_as_they_are():
    target = np.full((3, 4), 0.25)
    before = target.copy()
    tree = Tree([0, 1], [0, 0], {0: Distribution([0, 1, 2], [0.5, 0.25, 0.25])})
    verify.verify_tree_sampled(tree, target, np.random.default_rng(1).random)
    assert (target == before).all()


@pytest.mark.parametrize("greedy", [False, True], ids=["sampled", "greedy"])
def test_the_first_token_has_the_targets_distribution(greedy):
    """Three siblings of four possible ones, against a target that wants other tokens most."""
    rng = np.random.default_rng(5)
    p = np.array([0.05, 0.1, 0.15, 0.2, 0.2, 0.3])
    q = np.array([0.5, 0.25, 0.15, 0.1])
    counts = np.zeros(6)
    for _ in range(20000):
        children = [0, 1, 2] if greedy else rng.choice(4, 3, replace=False, p=q).tolist()
        tree = Tree(children, [0, 0, 0], {} if greedy else {0: Distribution([0, 1, 2, 3], q)})
        counts[verify.verify_tree_sampled(tree, np.tile(p, (4, 1)), rng.random).tokens[0]] += 1
    expected = counts.sum() * p
    # 5 degrees of freedom: a right program exceeds this once in a million.
    assert ((counts - expected) ** 2 / expected).sum() < 35.9
