"""The server's own model code (`aerie-head-logits`) against the reference and specforge.

Runs where AERIE_BIN names the folder of the built programs. With AERIE_BIN set, a missing tool is a
failure: a check that skips itself because the build lost a program checks nothing.
"""

from __future__ import annotations

import numpy as np
import pytest

import evaluation
from closeness import FLOAT32_AGAINST_FLOAT32, FLOAT32_AGAINST_REFERENCE
from compare_server_logits import run_tool

PREFIXES = evaluation.GOLDEN_SLOTS + [(1, 43), (6, 39), (11, 60)]


@pytest.fixture(scope="module")
def server_draft(binaries, recorded):
    """(sequence, slot) -> the tool's chain over five depths; each is run once."""
    known = {}

    def draft(index: int, slot: int) -> tuple[np.ndarray, np.ndarray]:
        if (index, slot) not in known:
            aux, tokens = recorded[index].rows(slot)
            known[index, slot] = run_tool(binaries, aux, tokens, evaluation.GOLDEN_DEPTHS)
        return known[index, slot]

    return draft


@pytest.mark.parametrize("index, slot", PREFIXES)
def test_server_logits_equal_the_reference(server_draft, reference_draft, compare, index, slot):
    logits, tokens = server_draft(index, slot)
    expected_logits, expected_tokens = reference_draft(index, slot, evaluation.GOLDEN_DEPTHS)
    assert logits.dtype == np.float32 and tokens.dtype == np.int32
    assert tokens.tolist() == expected_tokens.tolist()
    compare(logits, expected_logits, FLOAT32_AGAINST_REFERENCE, "server, float64 reference")


def test_server_logits_equal_the_golden_file(server_draft, golden, compare):
    for row, (index, slot) in enumerate(evaluation.GOLDEN_SLOTS):
        logits, tokens = server_draft(index, slot)
        assert tokens.tolist() == golden["tokens"][row].tolist()
        compare(logits, golden["logits"][row], FLOAT32_AGAINST_REFERENCE, "server, golden file")


def test_server_logits_equal_those_of_specforge(server_draft, recorded, compare):
    # Imported here: where the tool is not built, this file needs no torch.
    from specforge_drafter import SpecForgeDrafter

    drafter = SpecForgeDrafter(evaluation.drafter_folder(), evaluation.target_folder())
    for index, slot in PREFIXES:
        logits, tokens = server_draft(index, slot)
        expected_logits, expected_tokens = drafter.draft(
            *recorded[index].rows(slot), evaluation.GOLDEN_DEPTHS
        )
        assert tokens.tolist() == expected_tokens.tolist()
        compare(logits, expected_logits, FLOAT32_AGAINST_FLOAT32, "server, specforge")


def test_float32_rows_draft_like_the_bf16_rows_they_hold(binaries, server_draft, recorded, compare):
    aux, tokens = recorded[3].rows(90)
    logits, drafted = run_tool(binaries, aux, tokens, evaluation.GOLDEN_DEPTHS, rows_as_bf16=False)
    expected_logits, expected_tokens = server_draft(3, 90)
    assert drafted.tolist() == expected_tokens.tolist()
    compare(logits, expected_logits, FLOAT32_AGAINST_REFERENCE, "server, float32 rows")


def test_a_chain_of_one_is_the_head_of_a_longer_one(binaries, server_draft, recorded, compare):
    aux, tokens = recorded[0].rows(45)
    logits, drafted = run_tool(binaries, aux, tokens, 1)
    expected_logits, expected_tokens = server_draft(0, 45)
    assert logits.shape == (1, expected_logits.shape[1])
    assert drafted.tolist() == expected_tokens[:1].tolist()
    compare(logits, expected_logits[:1], FLOAT32_AGAINST_REFERENCE, "server, chain of one")
