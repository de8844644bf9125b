"""aerie-verify on the demo's head and real states of its target: wirings are planted, verdicts are expected.

Twelve texts are too few to tell neighbours apart, so what is asked here is what twelve can show.
"""

import json
import os
import subprocess

import planted
import pytest
from aerie_draft.wiring import FINAL_NORM, Capture, CaptureKind


def at(boundary):
    return Capture(CaptureKind.BOUNDARY, boundary)


TRUE_PLANTS = [
    planted.Plant("boundary_2", "a", "", at(2)),
    planted.Plant("boundary_15", "b", "", at(15)),
    planted.Plant("boundary_27", "c", "", at(27)),
    planted.Plant("final_norm", "d", "", FINAL_NORM),
]


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings") / "all"
    planted.record(os.environ["AERIE_TARGET"], folder, planted.eval_texts(), boundaries=(2, 15, 27))
    return folder


def verify(captures, *flags, drafter=planted.ROOT / "demo/drafter"):
    command = [os.environ["AERIE_VERIFY"], "--drafter", drafter, "--captures", captures, "--threads", "2"]
    command += ["--target", os.environ["AERIE_TARGET"], "--json", "--no-what-if", "--depth", "3", *flags]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert done.returncode in (0, 3, 4, 5), done.stderr
    result = json.loads(done.stdout)
    assert result["exit_code"] == done.returncode
    return result


def test_the_true_wiring_is_the_best_and_is_not_contradicted(recording, tmp_path):
    planted.replant(recording, tmp_path / "true", TRUE_PLANTS)
    head = planted.plant_head(tmp_path / "head", [1, 14, 26])
    result = verify(tmp_path / "true", "--write-wiring", drafter=head)
    assert result["best"]["tensors"] == ["a", "b", "c"]
    assert result["best"]["shift"] == 0
    assert result["verdict"] != "contradicted"
    assert result["alignment"]["shift"] == 0
    assert 0.38 < result["best"]["accuracy"] < 0.42
    # Written exactly when the verdict allows it.
    written = result["verdict"] in ("verified", "equivalent")
    assert (head / "wiring.json").exists() == written
    if written:
        guard = json.loads((head / "wiring.json").read_text())["guard"]
        assert [place["capture"]["boundary"] for place in guard["places"]] == [2, 15, 27]
        # The other captures of the head, and the final norm.
        assert all(len(place["alternatives"]) == 3 for place in guard["places"])
        assert guard["expectation"]["accuracy"] == pytest.approx(result["best"]["accuracy"], abs=0.05)


def test_labels_that_all_lie_are_contradicted(recording, tmp_path):
    lies = ["embedding", at(2), at(15), at(27)]
    labels = ["embed", "layer 2", "layer 15", "layer 27"]
    plants = [planted.Plant(p.tensor, p.name, label, lie)
              for p, label, lie in zip(TRUE_PLANTS, labels, lies)]
    planted.replant(recording, tmp_path / "story", plants)
    result = verify(tmp_path / "story")
    assert result["verdict"] == "contradicted"
    assert result["best"]["tensors"] == ["a", "b", "c"]
    verdicts = {label["tensor"]: label["verdict"] for label in result["labels"]}
    assert verdicts["a"] == verdicts["d"] == "contradicted"
    assert any("aerie-verify match" in advice for advice in result["advice"])


def test_a_reversed_order_is_contradicted_and_the_truth_named(recording, tmp_path):
    plants = [planted.Plant(p.tensor, p.name, "", claim)
              for p, claim in zip(TRUE_PLANTS, [at(27), at(15), at(2), FINAL_NORM])]
    planted.replant(recording, tmp_path / "reversed", plants)
    result = verify(tmp_path / "reversed")
    assert result["verdict"] == "contradicted"
    assert result["best"]["tensors"] == ["a", "b", "c"]


@pytest.mark.parametrize("shift", [-1, 1])
def test_states_of_other_positions_are_contradicted_by_their_values(recording, tmp_path, shift):
    planted.replant(recording, tmp_path / "shifted", TRUE_PLANTS, shift=shift)
    result = verify(tmp_path / "shifted")
    assert result["verdict"] == "contradicted"
    assert result["alignment"]["shift"] == shift
    assert result["best"]["shift"] == shift
