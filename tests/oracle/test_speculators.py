"""speculators' own class, our float64 reference and the golden file say the same.

Under a marker of its own, as the package pulls in many others: `pytest -m speculators`.
"""

from __future__ import annotations

import pytest

import evaluation
from closeness import FLOAT32_AGAINST_FLOAT32

pytestmark = pytest.mark.speculators

MORE_SLOTS = [(1, 43), (2, 5), (6, 39), (7, 140), (11, 60)]


@pytest.fixture(scope="module")
def speculators_draft(recorded):
    try:
        from speculators_drafter import SpeculatorsDrafter
    except ModuleNotFoundError as error:
        pytest.skip(
            f"python module {error.name} is not installed; expected speculators 0.9.0 with what it "
            "imports; install cmake/requirements/speculators.txt to run this"
        )
    drafter = SpeculatorsDrafter(evaluation.drafter_folder(), evaluation.target_folder())
    return lambda index, slot, k: drafter.draft(*recorded[index].rows(slot), k)


@pytest.mark.parametrize("index, slot", evaluation.GOLDEN_SLOTS + MORE_SLOTS)
def test_speculators_agrees_with_the_reference(
    speculators_draft, reference_draft, compare, index, slot
):
    logits, tokens = speculators_draft(index, slot, evaluation.GOLDEN_DEPTHS)
    expected_logits, expected_tokens = reference_draft(index, slot, evaluation.GOLDEN_DEPTHS)
    assert tokens.tolist() == expected_tokens.tolist()
    compare(logits, expected_logits, FLOAT32_AGAINST_FLOAT32, "speculators, float64 reference")


def test_speculators_agrees_with_the_golden_file(speculators_draft, golden, compare):
    for row, (index, slot) in enumerate(evaluation.GOLDEN_SLOTS):
        logits, tokens = speculators_draft(index, slot, evaluation.GOLDEN_DEPTHS)
        assert tokens.tolist() == golden["tokens"][row].tolist()
        compare(logits, golden["logits"][row], FLOAT32_AGAINST_FLOAT32, "speculators, golden file")
