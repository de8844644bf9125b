"""Dumps of trainers become recordings: which array is which, and what no file can tell."""

import json

import numpy as np
import pytest
from aerie_draft import FINAL_NORM, DType, LayerIdConvention, captures_at, importers
from aerie_draft.importers_layouts import claim_of_label, sample_of_dict, split_rows
from aerie_draft.importers_torch import RefusedFile, TorchTensor
from aerie_draft.recording import read_recording
from aerie_draft.recording_files import write_tensors

L, H = 5, 4
TOKENS = np.arange(7, 7 + L)


def state(index, length=L):
    """Distinct for every tensor, row and column."""
    rows = np.arange(length)[:, None] * 10 + np.arange(H)
    return (rows + 100 * index).astype(np.float32)


def tensor(array, kind="F32"):
    return TorchTensor(kind, np.asarray(array))


IDS = tensor(TOKENS, "I64")

LAYOUTS = {
    "specforge": (
        {
            "input_ids": IDS,
            "loss_mask": IDS,
            "hidden_state": tensor(state(3)[None]),
            "aux_hidden_state": tensor(np.concatenate([state(i) for i in range(3)], 1)[None]),
        },
        None,
        ["aux_0", "aux_1", "aux_2", "final"],
    ),
    "modelopt": (
        {
            "input_ids": IDS,
            "hidden_states": tensor(state(3)),
            "aux_hidden_states": tensor(np.concatenate([state(i) for i in range(3)], 1)),
        },
        None,
        ["aux_0", "aux_1", "aux_2", "final"],
    ),
    "speculators": (
        {"token_ids": IDS, "hidden_states": tensor(np.stack([state(i) for i in range(4)], 1))},
        None,
        ["aux_0", "aux_1", "aux_2", "aux_3"],
    ),
    "a_list": (
        {"tokens": TOKENS.tolist(), "hidden_states": [tensor(state(i)[None]) for i in range(4)]},
        None,
        ["aux_0", "aux_1", "aux_2", "aux_3"],
    ),
    "tensors_first": (
        {"input_ids": IDS, "hidden_states": tensor(np.stack([state(i) for i in range(4)])[None])},
        None,
        ["aux_0", "aux_1", "aux_2", "aux_3"],
    ),
    "side_by_side": (
        {
            "input_ids": tensor(TOKENS[None], "I32"),
            "hidden_states": tensor(np.concatenate([state(i) for i in range(4)], 1)),
        },
        H,
        ["aux_0", "aux_1", "aux_2", "aux_3"],
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_each_place_its_own_array(layout):
    content, hidden, names = LAYOUTS[layout]
    sample = sample_of_dict("file", content, hidden)
    assert sample.tokens.tolist() == TOKENS.tolist()
    assert list(sample.rows) == names
    for index, array in enumerate(sample.rows.values()):
        np.testing.assert_array_equal(array, state(index))


def test_a_loss_mask_of_zeros_tells_no_prompt_and_a_short_one_is_refused():
    content = {"input_ids": IDS, "hidden_states": [tensor(state(0))]}
    zeros = sample_of_dict("file", {**content, "loss_mask": [0] * L}, None)
    assert zeros.prompt_tokens is None
    with pytest.raises(RefusedFile, match="loss mask of 2 entries"):
        sample_of_dict("file", {**content, "loss_mask": [0, 1]}, None)


@pytest.mark.parametrize(
    "content, hidden, message",
    [
        ([1], None, "holds a list"),
        ({"input_ids": IDS}, None, "a dict with the keys input_ids"),
        ({"hidden_states": tensor(state(0))}, None, "a dict with the keys hidden_states"),
        ({"input_ids": IDS, "hidden_states": tensor(state(0))}, None, "give --hidden-size"),
        ({"input_ids": IDS, "hidden_states": tensor(state(0))}, 3, "a multiple of 3"),
        ({"input_ids": IDS, "hidden_states": tensor(state(0)[1:])}, H, "for 5 tokens"),
        ({"input_ids": IDS, "hidden_states": tensor(np.ones((L, L, H)))}, None, "told apart"),
        ({"input_ids": IDS, "hidden_states": tensor(state(0), "I64")}, H, "hidden_states is I64"),
        ({"input_ids": IDS, "hidden_states": [7]}, H, "hidden_states is int"),
        ({"input_ids": tensor(TOKENS, "F32"), "hidden_states": IDS}, H, "tokens of type F32"),
        ({"input_ids": [1.5], "hidden_states": IDS}, H, "tokens of shape"),
        (
            {"input_ids": IDS, "hidden_states": [tensor(state(0)), tensor(state(1), "F16")]},
            None,
            "types F16, F32",
        ),
    ],
)
def test_a_dump_that_does_not_say_enough_is_refused(content, hidden, message):
    with pytest.raises(RefusedFile, match=message) as refusal:
        sample_of_dict("file", content, hidden)
    assert "; expected " in str(refusal.value)


def test_one_token_with_a_batch_of_one_is_not_guessed_at():
    with pytest.raises(RefusedFile, match="told apart"):
        split_rows("file", "x", np.ones((1, 1, H)), 1, None)


@pytest.mark.parametrize(
    "label, convention, claim",
    [
        ("embed", None, "embedding"),
        ("Embedding", None, "embedding"),
        ("final norm", None, FINAL_NORM),
        ("boundary 15", None, captures_at([15])[0]),
        ("layer3", LayerIdConvention.INPUT_OF_LAYER, captures_at([3])[0]),
        ("layer 3", LayerIdConvention.OUTPUT_OF_LAYER, captures_at([4])[0]),
        ("layer 3", None, None),
        ("final", None, None),
        ("aux_0", None, None),
    ],
)
def test_a_label_claims_what_can_be_read_in_it_and_no_more(label, convention, claim):
    assert claim_of_label(label, convention, 30) == claim


def import_(tmp_path, source, *flags):
    status = importers.main([str(source), "--output", str(tmp_path / "out"), *flags])
    return read_recording(tmp_path / "out") if status == 0 else None


def test_speculators_files_become_a_recording_without_torch(tmp_path):
    source = tmp_path / "dump"
    source.mkdir()
    for number in (10, 9):
        words = (np.stack([state(number), state(0)], 1)).astype(np.float16)
        write_tensors(
            source / f"hs_{number}.safetensors",
            {"token_ids": ("I64", TOKENS + number), "hidden_states": ("F16", words)},
        )
    recording = import_(tmp_path, source, "--labels", "embed, layer 2", "--target-id", "kimi")
    assert recording.dtype is DType.FLOAT16
    assert recording.target.id == "kimi"
    assert [s.tokens[0] for s in recording] == [16, 17]  # 9 before 10
    assert [(t.name, t.label, t.claim) for t in recording.tensors] == [
        ("aux_0", "embed", "embedding"),
        ("aux_1", "layer 2", None),
    ]
    np.testing.assert_array_equal(recording.samples[1].rows("aux_0"), state(10))


class TestTorchDumps:
    torch = pytest.importorskip("torch")

    def save(self, folder, name, array, dtype=None):
        folder.mkdir(parents=True, exist_ok=True)
        self.torch.save(self.torch.tensor(np.asarray(array)).to(dtype), folder / name)

    def dump(self, source, samples=2):
        for number in range(samples):
            folder = source / f"sample_{number}"
            for index in range(3):
                self.save(folder, f"aux_{index}.pt", state(index + number), self.torch.bfloat16)
            self.save(folder, "final.pt", state(9), self.torch.bfloat16)
            self.save(folder, "loss_mask.pt", [0, 0, 1, 0, 1])
            self.save(folder, "input_ids.pt", TOKENS)

    def test_one_folder_a_sample_becomes_a_recording(self, tmp_path):
        self.dump(tmp_path / "dump")
        recording = import_(
            tmp_path,
            tmp_path / "dump",
            "--labels",
            "embed,layer3,layer31,layer59",
            "--convention",
            "input",
            "--num-layers",
            "61",
        )
        assert recording.dtype is DType.BFLOAT16
        assert [t.name for t in recording.tensors] == ["aux_0", "aux_1", "aux_2", "final"]
        assert [str(t.claim) for t in recording.tensors] == [
            "embedding",
            "boundary 3",
            "boundary 31",
            "boundary 59",
        ]
        assert recording.target.num_layers == 61
        assert recording.samples[0].prompt_tokens == 2  # before the first that the loss counts
        assert len(recording.samples) == 2
        np.testing.assert_allclose(recording.samples[1].rows("aux_2"), state(3), rtol=1e-2)

    def test_specforges_files_become_a_recording(self, tmp_path):
        torch = self.torch
        source = tmp_path / "dump" / "rows_0-5000"
        source.mkdir(parents=True)
        states = np.concatenate([state(i) for i in range(3)], 1)
        torch.save(
            {
                "input_ids": torch.tensor(TOKENS),
                "loss_mask": torch.tensor([[0, 1, 1, 0, 1]]),
                "hidden_state": torch.tensor(state(3))[None],
                "aux_hidden_state": torch.tensor(states)[None],
            },
            source / "data_0.ckpt",
        )
        recording = import_(tmp_path, tmp_path / "dump")
        assert [t.name for t in recording.tensors] == ["aux_0", "aux_1", "aux_2", "final"]
        np.testing.assert_array_equal(recording.samples[0].rows("final"), state(3))
        assert recording.samples[0].prompt_tokens == 1

    def test_target_gives_sizes(self, tmp_path):
        self.dump(tmp_path / "dump")
        folder = tmp_path / "target"
        folder.mkdir()
        config = {"hidden_size": H, "num_hidden_layers": 6, "vocab_size": 99}
        (folder / "config.json").write_text(json.dumps(config))
        recording = import_(tmp_path, tmp_path / "dump", "--target", str(folder), "--limit", "1")
        target = recording.target
        assert (target.id, target.num_layers, target.vocab_size) == ("target", 6, 99)
        assert len(recording.samples) == 1

    def test_a_dump_without_tokens_is_refused_with_what_is_missing(self, tmp_path, capsys):
        self.save(tmp_path / "dump" / "0", "aux_0.pt", state(0))
        assert import_(tmp_path, tmp_path / "dump") is None
        assert "expected a dict with tokens" in capsys.readouterr().err
        assert not (tmp_path / "out" / "recording.json").exists()

    def test_samples_with_other_tensors_than_the_first_are_refused(self, tmp_path, capsys):
        self.dump(tmp_path / "dump")
        (tmp_path / "dump" / "sample_1" / "aux_2.pt").unlink()
        assert import_(tmp_path, tmp_path / "dump") is None
        assert "sample_1: tensors aux_0, aux_1, final" in capsys.readouterr().err

    def test_labels_that_do_not_count_up_are_refused(self, tmp_path, capsys):
        self.dump(tmp_path / "dump")
        assert import_(tmp_path, tmp_path / "dump", "--labels", "a,b") is None
        assert "2 labels for the tensors aux_0" in capsys.readouterr().err


def test_an_empty_folder_is_refused(tmp_path, capsys):
    (tmp_path / "dump").mkdir()
    assert import_(tmp_path, tmp_path / "dump") is None
    assert "no samples" in capsys.readouterr().err


def test_a_number_that_is_none_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        importers.main(["x", "--output", "y", "--limit", "0"])
    assert "--limit is 0" in capsys.readouterr().err
