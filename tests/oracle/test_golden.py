"""The golden file, the tensor files that carry it, and the comparison that judges it."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

import evaluation
import tensor_file
from closeness import assert_close
from draft_chain import log_softmax
from record_golden import SMALLEST_MARGIN, margins


def test_the_golden_file_is_what_the_reference_computes(golden, reference_draft, compare):
    cases = list(zip(golden["sequence"].tolist(), golden["slot"].tolist(), strict=True))
    assert cases == evaluation.GOLDEN_SLOTS
    for row, (index, slot) in enumerate(cases):
        logits, tokens = reference_draft(index, slot, evaluation.GOLDEN_DEPTHS)
        assert golden["tokens"][row].tolist() == tokens.tolist()
        # Half a unit in the last place of a float32 between 16 and 32.
        compare(golden["logits"][row], logits, 1e-6, "golden file, float64 reference")
        chosen = log_softmax(logits).max(axis=-1)
        compare(golden["log_probs"][row], chosen, 1e-6, "golden log-probs, reference")


def test_golden_slots_keep_clear_of_near_ties(golden):
    assert margins(golden["logits"]).min() >= SMALLEST_MARGIN


def test_the_golden_file_was_recorded_from_these_inputs(head):
    recorded_from = json.loads(evaluation.GOLDEN_NOTES.read_text())["inputs"]

    def sha256(data: bytes) -> str:
        return hashlib.sha256(data).hexdigest()

    drafter = (evaluation.drafter_folder() / "model.safetensors").read_bytes()
    assert recorded_from["drafter_sha256"] == sha256(drafter)
    assert recorded_from["recording_sha256"] == sha256(evaluation.RECORDING.read_bytes())
    embedding = np.ascontiguousarray(head.embedding, np.float32).tobytes()
    assert recorded_from["target_embedding_float32_sha256"] == sha256(embedding)


def test_bf16_rows_survive_a_round_through_a_file(tmp_path, recorded):
    aux, tokens = recorded[11].rows(12)
    path = tmp_path / "rows.safetensors"
    written = {"aux": aux, "tokens": tokens.astype(np.int32)}
    tensor_file.write_tensors(path, written, as_bf16=frozenset({"aux"}))
    read = tensor_file.read_tensors(path)
    np.testing.assert_array_equal(read["aux"], aux)
    np.testing.assert_array_equal(read["tokens"], tokens)


def test_rows_that_bf16_cannot_hold_are_refused():
    with pytest.raises(ValueError, match="mantissa"):
        tensor_file.narrow_to_bf16(np.array([1.0, 1.001], np.float32))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1.1])
def test_a_comparison_fails_on(bad):
    for expected in (1.0, bad - 1.0):  # inf - 1 is inf: equal infinities are no agreement either
        with pytest.raises(AssertionError):
            assert_close(np.array([0.0, bad]), np.array([0.0, expected]), 1e-2, "a planted fault")
