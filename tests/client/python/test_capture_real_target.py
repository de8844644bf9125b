"""Recording the demo's target: what each place is, told by the target's own weights.

Skipped where build/target has not been made (demo/run and tests/run make it).
"""

import json
import pathlib

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from aerie_draft import capture  # noqa: E402
from aerie_draft.recording import read_recording  # noqa: E402
from aerie_draft.recording_files import read_tensors  # noqa: E402

TARGET = pathlib.Path(__file__).resolve().parents[3] / "build" / "target"
pytestmark = pytest.mark.skipif(
    not (TARGET / "model.safetensors").is_file(), reason="build/target is not there"
)


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("real")
    (folder / "prompts.txt").write_text("Explain tea to a beginner.\nWho was Ada Lovelace?\n")
    arguments = ["--model", str(TARGET), "--prompts", str(folder / "prompts.txt"), "--final-norm"]
    arguments += ["--max-new-tokens", "6", "--dtype", "fp32", "--threads", "1"]
    assert capture.main([*arguments, "--output", str(folder / "recording")]) == 0
    return read_recording(folder / "recording")


@pytest.fixture(scope="module")
def weights():
    return read_tensors(TARGET / "model.safetensors")


def test_boundary_zero_is_the_embedding_table_and_no_other_place_is(recording, weights):
    table = weights["model.embed_tokens.weight"][1]
    for sample in recording:
        np.testing.assert_array_equal(sample.rows("boundary_0"), table[sample.tokens])
        assert not np.allclose(sample.rows("boundary_1"), table[sample.tokens])


def test_the_last_boundary_becomes_the_final_norm_by_the_targets_own_weight(recording, weights):
    weight = weights["model.norm.weight"][1].astype(np.float32)
    epsilon = json.loads((TARGET / "config.json").read_text())["rms_norm_eps"]
    for sample in recording:
        rows = sample.rows("boundary_30")
        normed = rows / np.sqrt((rows**2).mean(axis=1, keepdims=True) + epsilon) * weight
        np.testing.assert_allclose(sample.rows("final_norm"), normed, rtol=1e-3, atol=1e-4)


def test_the_final_norm_gives_the_tokens_that_the_target_wrote(recording, weights):
    table = weights["model.embed_tokens.weight"][1].astype(np.float32)  # tied
    for sample in recording:
        choices = (sample.rows("final_norm") @ table.T).argmax(axis=1)
        first = sample.prompt_tokens
        assert choices[first - 1 : -1].tolist() == sample.tokens[first:].tolist()


def test_neighbours_have_nearly_one_size_and_are_different_all_the_same(recording):
    sample = recording.samples[0]
    lower, upper = sample.rows("boundary_13"), sample.rows("boundary_14")
    sizes = [np.sqrt((rows**2).mean()) for rows in (lower, upper)]
    assert abs(sizes[0] / sizes[1] - 1) < 1e-3
    apart = np.median(np.abs(lower - upper), axis=1) / np.median(np.abs(lower), axis=1)
    assert np.median(apart) > 0.2
