"""SpecForge's own class, our float64 reference and the golden file say the same."""

from __future__ import annotations

import pytest

import evaluation
from closeness import FLOAT32_AGAINST_FLOAT32

# Beyond the golden slots: other sequences, and slots early, in the middle and late in them.
MORE_SLOTS = [(1, 43), (2, 5), (6, 39), (7, 140), (11, 60)]


@pytest.fixture(scope="module")
def specforge_draft(recorded):
    try:
        from specforge_drafter import SpecForgeDrafter
    except ImportError as error:
        pytest.fail(
            f"cannot import specforge's class ({error}); expected specforge 0.2.0 with torch "
            "2.11.0 and transformers 5.8.1; run this from the environment that tests/run makes"
        )
    drafter = SpecForgeDrafter(evaluation.drafter_folder(), evaluation.target_folder())
    return lambda index, slot, k: drafter.draft(*recorded[index].rows(slot), k)


@pytest.mark.parametrize("index, slot", evaluation.GOLDEN_SLOTS + MORE_SLOTS)
def test_specforge_agrees_with_the_reference(
    specforge_draft, reference_draft, compare, index, slot
):
    logits, tokens = specforge_draft(index, slot, evaluation.GOLDEN_DEPTHS)
    expected_logits, expected_tokens = reference_draft(index, slot, evaluation.GOLDEN_DEPTHS)
    assert tokens.tolist() == expected_tokens.tolist()
    compare(logits, expected_logits, FLOAT32_AGAINST_FLOAT32, "specforge, float64 reference")


def test_specforge_agrees_with_the_golden_file(specforge_draft, golden, compare):
    for row, (index, slot) in enumerate(evaluation.GOLDEN_SLOTS):
        logits, tokens = specforge_draft(index, slot, evaluation.GOLDEN_DEPTHS)
        assert tokens.tolist() == golden["tokens"][row].tolist()
        compare(logits, golden["logits"][row], FLOAT32_AGAINST_FLOAT32, "specforge, golden file")
