"""The float64 reference itself: it drafts what the recording says, and keeps its own promises."""

from __future__ import annotations

import json

import numpy as np
import pytest

import evaluation
import tensor_file
from closeness import FLOAT64_REORDERED, largest_difference
from draft_chain import Sequence, log_softmax
from numpy_eagle3 import Head, HeadConfig

ROUND_SIZES = range(1, 9)


@pytest.fixture(scope="module")
def answer_drafts(head, recorded) -> list[np.ndarray]:
    """Per sequence [slots, 8]: the chain behind every slot of its answer."""
    drafts = []
    for sequence in recorded:
        rows = Sequence(head)
        rows.extend(*sequence.rows(sequence.answer_slots[-1]))
        drafts.append(rows.draft(max(ROUND_SIZES), sequence.answer_slots).tokens)
    return drafts


# --- Against the recording ---


def test_drafts_the_recorded_first_chains(recorded, answer_drafts):
    for sequence, drafts, first in zip(
        recorded, answer_drafts, evaluation.expected()["first_drafts"], strict=True
    ):
        assert first["slot"] == sequence.answer_slots[0]
        assert drafts[0].tolist() == first["draft"], f"sequence {sequence.index}"


@pytest.mark.parametrize("k", ROUND_SIZES)
def test_reaches_the_expected_accept_length_exactly(recorded, answer_drafts, k):
    expected = evaluation.expected()
    rounds, accept_length = evaluation.count_rounds(recorded, answer_drafts, k)
    assert rounds == expected["rounds"][str(k)]
    assert round(accept_length, 4) == expected["accept_length"][str(k)]


def test_reaches_the_expected_acceptance_by_position_exactly(recorded, answer_drafts):
    shares = evaluation.acceptance_by_position(recorded, answer_drafts)
    assert [round(share, 4) for share in shares] == evaluation.expected()["acceptance_by_position"]


@pytest.mark.parametrize("fault", ["own token", "boundaries reversed"])
def test_rows_of_another_meaning_draft_worse(head, recorded, answer_drafts, fault):
    """Acceptance on this recording does tell a right wiring from a wrong one."""
    right, wrong = [], []
    for sequence, drafts in zip(recorded[:4], answer_drafts[:4], strict=True):
        aux, tokens = sequence.rows(sequence.answer_slots[-1])
        if fault == "own token":
            tokens = sequence.tokens[: len(tokens)]  # row i with token i: not shifted
        else:
            low, middle, high = np.split(aux, 3, axis=1)
            aux = np.concatenate([high, middle, low], axis=1)
        rows = Sequence(head)
        rows.extend(aux, tokens)
        wrong.append(rows.draft(2, sequence.answer_slots).tokens)
        right.append(drafts)
    _, right_length = evaluation.count_rounds(recorded[:4], right, 2)
    _, wrong_length = evaluation.count_rounds(recorded[:4], wrong, 2)
    print(f"accept length {right_length:.3f}, with {fault} {wrong_length:.3f}")
    assert wrong_length < right_length - 0.2


# --- What a chain and a cache promise ---


def test_a_row_does_not_see_later_rows(head, recorded, compare):
    aux, tokens = recorded[1].rows(59)
    changed_aux, changed_tokens = aux.copy(), tokens.copy()
    changed_aux[40:] *= -3.0
    changed_tokens[40:] = 7
    untouched, changed = Sequence(head), Sequence(head)
    expected = untouched.extend(aux, tokens)
    actual = changed.extend(changed_aux, changed_tokens)
    compare(actual[:40], expected[:40], FLOAT64_REORDERED, "causality, earlier rows")
    assert largest_difference(actual[40:], expected[40:]) > 1.0


def test_a_row_sees_every_earlier_row(head, recorded):
    aux, tokens = recorded[1].rows(29)
    expected = Sequence(head).extend(aux, tokens)[-1]
    for row in (0, 13, 28):
        changed = aux.copy()
        changed[row] *= -3.0
        actual = Sequence(head).extend(changed, tokens)[-1]
        assert largest_difference(actual, expected) > 1e-3, f"row {row}"


def test_a_slot_of_a_long_sequence_drafts_like_the_last_row_of_a_short_one(
    head, recorded, reference_draft, compare
):
    sequence = recorded[8]
    rows = Sequence(head)
    rows.extend(*sequence.rows(150))
    slots = [100, 3, 57]
    together = rows.draft(5, np.array(slots))
    for index, slot in enumerate(slots):
        logits, tokens = reference_draft(8, slot, 5)
        assert together.tokens[index].tolist() == tokens.tolist()
        compare(together.logits[index], logits, FLOAT64_REORDERED, "slots together, slots alone")


def test_an_offset_of_all_positions_changes_nothing(head, recorded, compare):
    rows = recorded[2].rows(49)
    drafts = []
    for first_position in (0, 1, 3000):
        sequence = Sequence(head, first_position)
        sequence.extend(*rows)
        drafts.append(sequence.draft(5).logits)
    for moved in drafts[1:]:
        compare(moved, drafts[0], FLOAT64_REORDERED, "RoPE, all positions moved")


def test_the_distance_between_rows_does_change_the_logits(head, recorded, monkeypatch):
    """The counterpart of the test above: a RoPE that did nothing would pass that one."""
    rows = recorded[2].rows(49)
    expected = Sequence(head).extend(*rows)[-1]
    monkeypatch.setattr(head, "_rotate", lambda x, positions, lengths: x)
    assert largest_difference(Sequence(head).extend(*rows)[-1], expected) > 1e-2


@pytest.mark.parametrize("index, slot", [(0, 45), (5, 0), (9, 100)])
def test_a_chain_equals_a_full_recompute(head, recorded, reference_draft, compare, index, slot):
    aux, tokens = recorded[index].rows(slot)
    logits, drafted = reference_draft(index, slot, 5)
    hidden = head.fuse(aux)
    for depth in range(5):
        whole = Sequence(head)
        recomputed = whole.extend_fused(hidden, tokens)[-1]
        compare(recomputed, logits[depth], FLOAT64_REORDERED, "chain, full recompute")
        hidden = np.concatenate([hidden, whole.feed()[None]])
        tokens = np.append(tokens, drafted[depth])


def test_rows_in_chunks_equal_rows_at_once(head, recorded, compare):
    aux, tokens = recorded[4].rows(79)
    expected = Sequence(head).extend(aux, tokens)
    chunked, logits = Sequence(head), []
    for begin, end in [(0, 1), (1, 33), (33, 34), (34, 80)]:
        logits.append(chunked.extend(aux[begin:end], tokens[begin:end]))
    compare(np.concatenate(logits), expected, FLOAT64_REORDERED, "chunks, at once")


def test_guessed_rows_leave_no_trace(head, recorded, compare):
    aux, tokens = recorded[6].rows(60)
    drafting, silent = Sequence(head), Sequence(head)
    for begin, end in [(0, 40), (40, 42), (42, 61)]:
        drafting.extend(aux[begin:end], tokens[begin:end])
        silent.extend(aux[begin:end], tokens[begin:end])
        drafting.draft(6)
    assert len(drafting) == len(silent) == 61
    compare(drafting.draft(5).logits, silent.draft(5).logits, 0.0, "after drafts, without drafts")


def test_a_truncated_sequence_drafts_like_one_that_never_went_further(
    head, recorded, reference_draft, compare
):
    rows = Sequence(head)
    rows.extend(*recorded[7].rows(70))
    rows.truncate(51)
    logits, _ = reference_draft(7, 50, 5)
    compare(rows.draft(5).logits[0], logits, FLOAT64_REORDERED, "truncated, fresh")


def test_log_probabilities_are_those_of_the_chosen(head, recorded):
    rows = Sequence(head)
    rows.extend(*recorded[3].rows(60))
    draft = rows.draft(4)
    probabilities = np.exp(log_softmax(draft.logits[0]))
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.exp(draft.log_probs[0]), probabilities.max(axis=-1), rtol=1e-12)


# --- What it refuses ---


@pytest.mark.parametrize(
    "key, value",
    [
        ("hidden_act", "gelu"),
        ("mlp_bias", True),
        ("logit_scale", 0.5),
        ("sliding_window", 512),
        ("rope_scaling", {"rope_type": "longrope", "factor": 8.0}),
    ],
)
def test_refuses_a_setting_that_its_equations_lack(tmp_path, key, value):
    config = json.loads((evaluation.drafter_folder() / "config.json").read_text())
    config[key] = value
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=key):
        HeadConfig.load(tmp_path)


def test_refuses_a_tensor_that_no_equation_uses(head):
    folder = evaluation.drafter_folder()
    weights = tensor_file.read_tensors(folder / "model.safetensors")
    weights["midlayer.self_attn.sinks"] = np.ones(9, np.float32)
    with pytest.raises(ValueError, match="sinks"):
        Head(HeadConfig.load(folder), weights, head.embedding)


@pytest.mark.parametrize("flag, tensor", [("fc_norm", "fc_norm"), ("norm_before_fc", "input_norm")])
def test_refuses_a_flag_whose_tensor_is_missing(head, flag, tensor):
    config = json.loads((evaluation.drafter_folder() / "config.json").read_text())
    weights = tensor_file.read_tensors(evaluation.drafter_folder() / "model.safetensors")
    config[flag] = True
    with pytest.raises(ValueError, match=tensor):
        Head(HeadConfig.parse(config), weights, head.embedding)


def test_refuses_weights_of_another_shape(head):
    folder = evaluation.drafter_folder()
    weights = tensor_file.read_tensors(folder / "model.safetensors")
    weights["norm.weight"] = weights["norm.weight"][:-1]
    with pytest.raises(ValueError, match="norm.weight"):
        Head(HeadConfig.load(folder), weights, head.embedding)
