"""Recordings: what is written is read back, and what would lie later is refused now."""

import json

import numpy as np
import pytest
from aerie_draft import FINAL_NORM, DType, captures_at
from aerie_draft.dtypes import PLAIN_DTYPES
from aerie_draft.recording import RecordedTensor, RecordingWriter, Target, read_recording
from aerie_draft.recording_files import read_tensors, write_tensors

TARGET = Target("tiny", hidden_size=4, num_layers=3, vocab_size=20)
TENSORS = [
    RecordedTensor("aux_0", "layer 1", captures_at([2])[0]),
    RecordedTensor("last", "", FINAL_NORM),
    RecordedTensor("e", "embed", "embedding"),
    RecordedTensor("x"),
]


def rows(length, seed):
    generator = np.random.default_rng(seed)
    return {t.name: generator.normal(size=(length, 4)).astype(np.float32) for t in TENSORS}


def writer(folder, dtype=DType.FLOAT32, **keywords):
    return RecordingWriter(folder, TARGET, TENSORS, dtype, "a test", **keywords)


@pytest.mark.parametrize("dtype", PLAIN_DTYPES)
@pytest.mark.parametrize("shard_bytes", [1, 1 << 20], ids=["a_file_a_sample", "one_file"])
def test_what_is_written_is_read_back(tmp_path, dtype, shard_bytes):
    with writer(tmp_path / "r", dtype, shard_bytes=shard_bytes) as recording:
        recording.add([3, 1, 19], rows(3, 1), prompt_tokens=2)
        recording.add(np.array([5]), rows(1, 2), name="other")
    read = read_recording(tmp_path / "r")
    assert (read.target, read.dtype, read.source) == (TARGET, dtype, "a test")
    assert list(read.tensors) == TENSORS
    first, second = read
    assert (first.name, first.prompt_tokens, second.name, second.prompt_tokens) == (
        "0",
        2,
        "other",
        None,
    )
    assert first.tokens.tolist() == [3, 1, 19]
    for name, values in rows(3, 1).items():
        tolerance = {DType.FLOAT32: 0, DType.FLOAT16: 2e-3, DType.BFLOAT16: 2e-2}[dtype]
        np.testing.assert_allclose(first.rows(name), values, atol=tolerance)
    files = sorted(p.name for p in (tmp_path / "r").glob("*.safetensors"))
    assert len(files) == (2 if shard_bytes == 1 else 1)


def test_an_interrupted_recording_is_none(tmp_path):
    with pytest.raises(RuntimeError), writer(tmp_path / "r") as recording:
        recording.add([1], rows(1, 1))
        raise RuntimeError
    with pytest.raises(FileNotFoundError, match="record or import"):
        read_recording(tmp_path / "r")


def test_a_recording_is_never_overwritten(tmp_path):
    with writer(tmp_path / "r") as recording:
        recording.add([1], rows(1, 1))
    with pytest.raises(FileExistsError, match="already"):
        writer(tmp_path / "r")


@pytest.mark.parametrize(
    "tokens, edit, keywords, message",
    [
        ([20, 1], {}, {}, "in 1 .. 20; expected one or more in 0 .. 19"),
        ([-1, 1], {}, {}, "in -1 .. 1"),
        ([], {}, {}, "shape \\[0\\]"),
        ([1, 2], {"x": np.ones((3, 4))}, {}, "x of sample 0 has shape \\[3, 4\\]"),
        ([1, 2], {"x": np.ones((2, 5))}, {}, "has shape \\[2, 5\\]"),
        ([1, 2], {"x": np.array([[1] * 4, [np.nan] * 4])}, {}, "row 1 of x"),
        ([1, 2], {"x": np.full((2, 4), np.inf)}, {}, "row 0 of x"),
        ([1, 2], {"y": np.ones((2, 4))}, {}, "brings the tensors"),
        ([1, 2], {}, {"prompt_tokens": 3}, "3 prompt tokens"),
        ([1, 2], {}, {"name": "a.b"}, "called 'a.b'"),
    ],
)
def test_a_sample_that_contradicts_itself_is_refused(tmp_path, tokens, edit, keywords, message):
    recording = writer(tmp_path / "r")
    with pytest.raises(ValueError, match=message):
        recording.add(tokens, {**rows(2, 1), **edit}, **keywords)


def test_states_that_overflow_float16_are_refused_by_row(tmp_path):
    recording = writer(tmp_path / "r", DType.FLOAT16)
    large = rows(2, 1)
    large["last"][1, 3] = 70000
    with pytest.raises(ValueError, match="row 1 of last .* not finite as float16.*bfloat16"):
        recording.add([1, 2], large)


@pytest.mark.parametrize("name", ["tokens", "a/b", "", ".x"])
def test_a_tensor_name_that_no_file_could_hold_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match="a tensor is called"):
        RecordingWriter(tmp_path / "r", TARGET, [RecordedTensor(name)], DType.FLOAT32)


@pytest.mark.parametrize(
    "edit, message",
    [
        (lambda d: d.update(format="aerie-recording/2"), "format"),
        (lambda d: d.pop("samples"), "cannot be used"),
        (lambda d: d["samples"][0].update(file="../r.safetensors"), "names the file"),
        (lambda d: d["samples"][0].update(tokens=4), "expected I32 \\[4\\]"),
        (lambda d: d.update(dtype="float16"), "expected F16"),
        (lambda d: d["tensors"][0].update(name="aux_9"), "holds 0.aux_9 as nothing"),
    ],
)
def test_a_description_that_its_files_contradict_is_refused(tmp_path, edit, message):
    with writer(tmp_path / "r") as recording:
        recording.add([1, 2, 3], rows(3, 1))
    path = tmp_path / "r" / "recording.json"
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=message):
        read_recording(tmp_path / "r")


def test_tensor_files_are_what_the_safetensors_package_reads(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    write_tensors(tmp_path / "f", {"a": ("F32", values), "b": ("I32", np.array([7]))})
    read = safetensors.load_file(tmp_path / "f")
    np.testing.assert_array_equal(read["a"], values)
    assert read["b"].tolist() == [7]
    safetensors.save_file({"c": values}, tmp_path / "g")
    kind, array = read_tensors(tmp_path / "g")["c"]
    assert kind == "F32"
    np.testing.assert_array_equal(array, values)


@pytest.mark.parametrize(
    "header, message",
    [
        (b"[]", "no object"),
        (b"{", "no JSON"),
        (b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}', "4 bytes"),
        (b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', "a place in the file"),
        (b'{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}', "a place in the file"),
        (b'{"a":{"dtype":"F32","shape":[1]}}', "without"),
        (b'{"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}}', "F8_E4M3"),
    ],
)
def test_a_damaged_tensor_file_is_refused(tmp_path, header, message):
    path = tmp_path / "f"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    with pytest.raises(ValueError, match=message):
        read_tensors(path)


def test_a_header_longer_than_its_file_is_refused(tmp_path):
    (tmp_path / "f").write_bytes((1 << 40).to_bytes(8, "little") + b"{}")
    with pytest.raises(ValueError, match="a header of"):
        read_tensors(tmp_path / "f")
