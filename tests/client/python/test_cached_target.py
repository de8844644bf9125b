"""A draft tree through the target in one forward: each node as if its path alone had been run."""

import random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import numpy as np  # noqa: E402
from aerie_draft.transformers import CachedTarget  # noqa: E402
from aerie_draft.wiring import captures_at  # noqa: E402
from tiny_target import PROMPT, VOCAB, tiny_llama  # noqa: E402

CAPTURES = captures_at([1, 2, 3])


@pytest.fixture(scope="module", params=["sdpa", "eager"])
def model(request):
    return tiny_llama(attn_implementation=request.param)


def random_tree(seed, nodes):
    draw = random.Random(seed)
    parents = [draw.randrange(node + 1) for node in range(nodes)]
    return [draw.randrange(VOCAB) for _ in parents], parents


def path_to(node, parents):
    path = []
    while node:
        path.append(node)
        node = parents[node - 1]
    return path[::-1]


def close(a, b):
    # States reach 60; False with a NaN.
    return bool(np.all(np.abs(np.asarray(a) - np.asarray(b)) <= 1e-3))


@pytest.mark.parametrize("seed", range(6))
def test_each_node_sees_its_own_path_alone(model, seed):
    tokens, parents = random_tree(seed, 9)
    target = CachedTarget(model, CAPTURES)
    target.forward(PROMPT[:-1], 1)
    logits, rows = target.forward_tree(PROMPT[-1], tokens, parents)
    assert logits.shape == (10, VOCAB)
    for node in range(10):
        path = [tokens[n - 1] for n in path_to(node, parents)]
        alone = CachedTarget(model, CAPTURES)
        expected, states = alone.forward(PROMPT + path, 1)
        assert close(logits[node], expected[0]), f"node {node} of parents {parents}"
        assert close(rows[node], states[-1]), f"node {node} of parents {parents}"


@pytest.mark.parametrize("seed", range(6))
def test_what_is_kept_is_the_path(model, seed):
    tokens, parents = random_tree(seed, 9)
    path = path_to(9, parents)
    target = CachedTarget(model, CAPTURES)
    target.forward(PROMPT[:-1], 1)
    before = target.length
    target.forward_tree(PROMPT[-1], tokens, parents)
    target.keep_path(before, path)
    assert target.length == before + 1 + len(path)
    logits, _ = target.forward([7], 1)
    text = PROMPT + [tokens[n - 1] for n in path] + [7]
    expected, _ = CachedTarget(model, CAPTURES).forward(text, 1)
    assert close(logits, expected)


def test_a_tree_without_nodes_is_a_plain_step(model):
    target = CachedTarget(model, CAPTURES)
    target.forward(PROMPT[:-1], 1)
    before = target.length
    logits, rows = target.forward_tree(PROMPT[-1], [], [])
    target.keep_path(before, [])
    expected, states = CachedTarget(model, CAPTURES).forward(PROMPT, 1)
    assert target.length == len(PROMPT)
    assert close(logits, expected) and close(rows[0], states[-1])
