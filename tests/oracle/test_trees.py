"""The scores behind the nodes of a tree, as the server drafts it, against the float64 reference.

The reference knows chains only: behind each node it is forced along the node's own path. Trees are
wide and uneven, so that a node which sees a row of another branch shows.
"""

from __future__ import annotations

import pathlib
import subprocess

import numpy as np
import pytest

import evaluation
import head_logits_tool
import tensor_file
from closeness import FLOAT32_AGAINST_REFERENCE
from draft_chain import Sequence

# Parents by node number, the root being 0; node i + 1 is the i-th of these.
PARENTS = np.array([0, 0, 0, 1, 1, 2, 4, 5, 3, 6, 8, 0, 12, 9], np.int32)


def server_tree(
    binaries: pathlib.Path,
    scratch: pathlib.Path,
    folders: tuple[pathlib.Path, pathlib.Path],
    rows: tuple[np.ndarray, np.ndarray],
    tree_tokens: np.ndarray,
) -> np.ndarray:
    """Logits [nodes, Vd] behind each node of PARENTS, drafted behind the last of the rows."""
    recorded, answer = scratch / "rows.safetensors", scratch / "answer.safetensors"
    tensors = {"aux": rows[0], "tokens": rows[1].astype(np.int32)}
    tensors |= {"tree_tokens": tree_tokens.astype(np.int32), "tree_parents": PARENTS}
    tensor_file.write_tensors(recorded, tensors, as_bf16=frozenset({"aux"}))
    command = [str(binaries / head_logits_tool.TOOL), "--k", "3"]
    command += ["--drafter", str(folders[0]), "--target", str(folders[1])]
    command += ["--input", str(recorded), "--output", str(answer)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return tensor_file.read_tensors(answer)["tree_logits"]


def reference_tree(sequence: Sequence, tree_tokens: np.ndarray) -> np.ndarray:
    logits = []
    for node in range(1, len(PARENTS) + 1):
        path = []
        while node != 0:
            path.insert(0, tree_tokens[node - 1])
            node = PARENTS[node - 1]
        forced = np.array([path])
        logits.append(sequence.draft(len(path) + 1, forced=forced).logits[0, -1])
    return np.array(logits)


def random_tokens(vocab: int) -> np.ndarray:
    return np.random.default_rng(17).integers(0, vocab, len(PARENTS))


@pytest.mark.parametrize("index, slot", [(0, 45), (3, 90)])
def test_the_demos_nodes_score_as_the_reference_along_their_paths(
    binaries, head, recorded, compare, tmp_path, index, slot
):
    rows = recorded[index].rows(slot)
    sequence = Sequence(head)
    sequence.extend(*rows)
    tokens = random_tokens(len(head.embedding))
    folders = (evaluation.drafter_folder(), evaluation.target_folder())
    logits = server_tree(binaries, tmp_path, folders, rows, tokens)
    expected = reference_tree(sequence, tokens)
    compare(logits, expected, FLOAT32_AGAINST_REFERENCE, "server's tree, float64 reference")


@pytest.mark.parametrize("name", ["rope_dynamic", "mla", "three_layers", "norm_output", "partial_rotary"])
def test_nodes_of_other_heads_score_as_the_reference_along_their_paths(
    binaries, case_of, compare, tmp_path, name
):
    case = case_of(name)
    tokens = random_tokens(case.plan.vocab)
    rows = (case.rows.aux, case.rows.tokens)
    logits = server_tree(binaries, tmp_path, (case.drafter, case.target), rows, tokens)
    expected = reference_tree(case.reference, tokens)
    compare(logits, expected, FLOAT32_AGAINST_REFERENCE, "server's tree, float64 reference")
