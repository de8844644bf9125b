"""Every published variant of a head: the reference, third parties and the server say the same."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import head_logits_tool
import variant_oracles
from closeness import (
    BFLOAT16_RELATIVE,
    FLOAT32_AGAINST_FLOAT32,
    FLOAT32_AGAINST_REFERENCE,
    FLOAT64_REORDERED,
    largest_difference,
    relative_difference,
)
from draft_chain import Sequence
from head_variants import VARIANTS
from numpy_eagle3 import Head
from variant_oracles import DEPTHS, along


def _pairs(*oracles: str):
    return [pair for pair in variant_oracles.all_cases() if pair[1] in oracles]


# --- The reference against code that is not ours ---


@pytest.mark.parametrize("name, oracle", _pairs("transformers", "specforge"))
def test_the_reference_agrees_with_third_parties(case_of, compare, name, oracle):
    _compare_reference(case_of(name), oracle, compare)


@pytest.mark.speculators
@pytest.mark.parametrize("name", [name for name, _ in _pairs("speculators")])
def test_the_reference_agrees_with_speculators(case_of, compare, name):
    pytest.importorskip("speculators.models.eagle3", exc_type=ImportError)
    _compare_reference(case_of(name), "speculators", compare)


def _compare_reference(case, oracle, compare):
    expected = case.reference.draft(DEPTHS)
    logits, chosen = variant_oracles.third_party_draft(oracle, case, expected.tokens[0])
    compare(logits, expected.logits[0], FLOAT32_AGAINST_FLOAT32, f"reference, {oracle}")
    assert chosen.tolist() == expected.tokens[0].tolist()


def test_every_variant_has_a_judge_that_is_not_ours():
    judged = {name for name, _ in _pairs("transformers", "specforge")}
    assert judged == set(VARIANTS)


def test_the_older_meaning_of_norm_output_is_specforges_own(case_of, compare):
    """Its class feeds the un-normed output back whatever the flag says; servers read it anew."""
    case = case_of("specforge_norm_output")
    head = Head.load(case.drafter, case.target)
    head.config = dataclasses.replace(head.config, norm_output=False)
    sequence = Sequence(head)
    sequence.extend(case.rows.aux, case.rows.tokens)
    expected = sequence.draft(DEPTHS)
    logits, _ = variant_oracles.third_party_draft("specforge", case, expected.tokens[0])
    compare(logits, expected.logits[0], FLOAT32_AGAINST_FLOAT32, "older norm_output, specforge")
    anew = case.reference.draft(DEPTHS, forced=expected.tokens).logits[0]
    assert largest_difference(logits[:1], anew[:1]) <= FLOAT32_AGAINST_FLOAT32
    assert largest_difference(logits[1:], anew[1:]) > 0.1


# Spellings of one head: the same numbers under other names and keys.
ALIKE = [
    ("specforge", "torchspec"),
    ("specforge", "megatron"),
    ("specforge", "model_midlayer"),
    ("specforge", "multimodal_target"),
    ("specforge", "rope_unset"),
    ("specforge", "rope_mrope"),
    ("specforge", "d2t_int32"),
    ("megatron_deep", "sglang_deep"),
    ("fc_norm", "aux_norm_names"),
    ("safeailab_full_vocabulary", "full_vocabulary"),
]


@pytest.mark.parametrize("one, other", ALIKE)
def test_spelling_changes_nothing(case_of, compare, one, other):
    drafts = [case_of(name).reference.draft(DEPTHS) for name in (one, other)]
    compare(drafts[0].logits, drafts[1].logits, FLOAT64_REORDERED, "two spellings of one head")


# --- The server ---


@pytest.mark.variants
@pytest.mark.parametrize("name", VARIANTS)
def test_server_logits_equal_the_reference(served, case_of, compare, name):
    logits, tokens = served(name, "float32")
    _check_choice(case_of(name), logits, tokens)
    expected = case_of(name).reference.draft(DEPTHS, forced=along(tokens))
    compare(logits, expected.logits[0], FLOAT32_AGAINST_REFERENCE, "server, float64 reference")


@pytest.mark.variants
@pytest.mark.parametrize("name, oracle", _pairs("transformers", "specforge"))
def test_server_logits_equal_those_of_third_parties(served, case_of, compare, name, oracle):
    logits, tokens = served(name, "float32")
    expected, _ = variant_oracles.third_party_draft(oracle, case_of(name), tokens)
    compare(logits, expected, FLOAT32_AGAINST_FLOAT32, f"server, {oracle}")


@pytest.mark.variants
@pytest.mark.parametrize("name", VARIANTS)
def test_server_logits_in_bfloat16_stay_near_the_reference(served, case_of, compare, name):
    logits, tokens = served(name, "bfloat16")
    _check_choice(case_of(name), logits, tokens)
    expected = case_of(name).reference.draft(DEPTHS, forced=along(tokens)).logits[0]
    what = "server in bfloat16, float64 reference (relative)"
    compare(logits, expected, BFLOAT16_RELATIVE, what, relative_difference)


@pytest.mark.variants
def test_the_older_meaning_of_norm_output_can_be_asked_for(binaries, case_of, compare):
    case = case_of("specforge_norm_output")
    logits, tokens = head_logits_tool.run(
        binaries,
        case.drafter,
        case.target,
        case.rows.aux,
        case.rows.tokens,
        DEPTHS,
        flags=("--norm-output", "off"),
    )
    expected, _ = variant_oracles.third_party_draft("specforge", case, tokens)
    compare(logits, expected, FLOAT32_AGAINST_FLOAT32, "server, older norm_output of specforge")


def _check_choice(case, logits: np.ndarray, tokens: np.ndarray) -> None:
    """Its tokens are the best of its own logits, as target ids; of equal ones any."""
    d2t = case.reference.head.d2t
    for row, token in zip(logits, tokens, strict=True):
        best = np.flatnonzero(row == row.max())
        assert token in (best if d2t is None else best + d2t[best])
