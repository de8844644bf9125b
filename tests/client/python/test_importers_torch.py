"""The reader of torch-saved files: it gives what torch.load gives, and runs nothing."""

import collections
import gzip
import io
import os
import pickle
import zipfile

import numpy as np
import pytest
from aerie_draft.importers_torch import RefusedFile, TorchTensor, read_torch_file


def archive(path, pickled, storages=(), compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as file:
        file.writestr("x/data.pkl", pickled)
        for key, data in storages:
            file.writestr(f"x/data/{key}", data)
    return path


class Runs:
    """Pickles to a call of os.system."""

    def __init__(self, command):
        self._command = command

    def __reduce__(self):
        return os.system, (self._command,)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    "wrap",
    [lambda x: x, lambda x: {"hidden_states": [x]}, lambda x: (1, {"a": x})],
    ids=["alone", "in_a_dict", "in_a_tuple"],
)
def test_a_pickle_that_would_run_a_program_is_refused_and_runs_nothing(tmp_path, protocol, wrap):
    witness = tmp_path / "it_ran"
    pickled = pickle.dumps(wrap(Runs(f"touch {witness}")), protocol)
    path = archive(tmp_path / "a.pt", pickled)
    with pytest.raises(RefusedFile, match="posix.system|operation"):
        read_torch_file(path)
    assert not witness.exists()
    pickle.loads(pickled)  # The witness is one: unpickling does run it.
    assert witness.exists()


@pytest.mark.parametrize(
    "pickled, name",
    [
        (b"cbuiltins\neval\n(S'1'\ntR.", "builtins.eval"),
        (b"cposix\nsystem\nq\x00.", "posix.system"),
        (b"\x80\x04\x8c\x08builtins\x8c\x04exec\x93.", "builtins.exec"),
        (b"ctorch._utils\n_rebuild_wrapper_subclass\n.", "_rebuild_wrapper_subclass"),
        (b"ctorch.jit\nload\n.", "torch.jit.load"),
        (b"(S'a'\nios\nsystem\n.", "operation"),
        (b"\x80\x02ccollections\nOrderedDict\n)\x81.", "operation NEWOBJ"),
        (b"\x80\x02ccollections\nOrderedDict\n)R}b.", "operation BUILD"),
        (b"\x80\x02\x82\x01.", "operation EXT1"),
        (b"Pid\n.", "operation PERSID"),
    ],
)
def test_names_and_operations_outside_the_list_are_refused_by_name(tmp_path, pickled, name):
    with pytest.raises(RefusedFile) as refusal:
        read_torch_file(archive(tmp_path / "a.pt", pickled))
    assert name in str(refusal.value)
    assert "; expected " in str(refusal.value)


def tensor_pickle(shape=(2, 2), strides=(2, 1), offset=0, count=4, key=b"0", kind=b"FloatStorage"):
    """The pickle of one tensor, put together by hand."""

    def number(n):
        return b"J" + n.to_bytes(4, "little", signed=True)

    def numbers(values):
        return b"(" + b"".join(map(number, values)) + b"t"

    storage = b"(U\x07storagectorch\n" + kind + b"\nX\x01\0\0\0" + key + b"X\x03\0\0\0cpu"
    storage = storage.replace(b"U\x07storage", b"X\x07\0\0\0storage") + number(count) + b"tQ"
    body = storage + number(offset) + numbers(shape) + numbers(strides) + b"\x89N"
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + body + b"tR."


FOUR = np.arange(4, dtype=np.float32).tobytes()


def test_a_tensor_put_together_by_hand_is_read(tmp_path):
    path = archive(tmp_path / "a.pt", tensor_pickle(), [("0", FOUR)])
    read = read_torch_file(path)
    assert read.kind == "F32"
    np.testing.assert_array_equal(read.array, [[0, 1], [2, 3]])


@pytest.mark.parametrize(
    "pickled",
    [
        tensor_pickle(shape=(2, 3)),
        tensor_pickle(strides=(4, 1)),
        tensor_pickle(offset=1),
        tensor_pickle(offset=-1),
        tensor_pickle(strides=(-2, 1)),
        tensor_pickle(shape=(1 << 20, 1 << 20), strides=(0, 0)),
        tensor_pickle(count=5),
        tensor_pickle(kind=b"DoubleStorage"),
        tensor_pickle(key=b"1"),
        tensor_pickle(key=b"/"),
        tensor_pickle()[:-1],
        tensor_pickle()[:40],
        tensor_pickle().replace(b"storage", b"nothing"),
        # A tuple that looks like a storage: strides over it would leave its memory.
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x03\0\0\0F64](\x88\x88\x88\x88etK\0(K\x04t"
        b"(K\x01t\x89NtR.",
        b"\x80\x02ccollections\nOrderedDict\n.",
        b"\x80\x02](.",
        b"\x80\x02}]K\x01s.",
        b"\x80\x02h\x05.",
        b"\x80\x02a.",
        b"\x80\x02t.",
        b"",
    ],
)
def test_a_tensor_that_leaves_its_storage_or_a_broken_pickle_is_refused(tmp_path, pickled):
    path = archive(tmp_path / "a.pt", pickled, [("0", FOUR)])
    with pytest.raises(RefusedFile, match="malformed"):
        read_torch_file(path)


def test_a_container_that_holds_itself_is_read_as_such(tmp_path):
    (inner,) = read_torch_file(archive(tmp_path / "a.pt", b"\x80\x02]q\x00h\x00a."))
    assert inner[0] is inner


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_pickle_with_changed_bytes_is_read_or_refused_and_nothing_else(tmp_path):
    sound = tensor_pickle()
    generator = np.random.default_rng(5)
    refused = 0
    for _ in range(2000):
        changed = bytearray(sound)
        for place in generator.integers(2, len(sound), generator.integers(1, 5)):
            changed[place] = generator.integers(256)
        path = archive(tmp_path / "a.pt", bytes(changed), [("0", FOUR)])
        try:
            read_torch_file(path)
        except RefusedFile:
            refused += 1
    assert refused > 1000


def test_compressed_entries_are_refused(tmp_path):
    path = archive(tmp_path / "a.pt", pickle.dumps({}, 2), (), zipfile.ZIP_DEFLATED)
    with pytest.raises(RefusedFile, match="compressed"):
        read_torch_file(path)


@pytest.mark.parametrize("content", [b"", b"\x80\x02.", b"PK\x03\x04 and no more"])
def test_what_is_no_archive_is_refused(tmp_path, content):
    (tmp_path / "a.pt").write_bytes(content)
    with pytest.raises(RefusedFile, match="no zip archive"):
        read_torch_file(tmp_path / "a.pt")


def test_an_archive_without_a_pickle_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as file:
        file.writestr("x/data/0", b"")
    with pytest.raises(RefusedFile, match="0 entries called data.pkl"):
        read_torch_file(tmp_path / "a.pt")


def test_a_damaged_entry_is_refused(tmp_path):
    path = archive(tmp_path / "a.pt", tensor_pickle(), [("0", FOUR)])
    content = path.read_bytes()
    path.write_bytes(content.replace(FOUR, FOUR[::-1]))  # Its checksum is another one.
    with pytest.raises(RefusedFile, match="cannot be read"):
        read_torch_file(path)


def plain(value):
    """TorchTensor -> array, so that results compare."""
    if isinstance(value, TorchTensor):
        return value.array
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(v) for v in value)
    return value


class TestAgainstTorch:
    """The same files by torch itself."""

    torch = pytest.importorskip("torch")

    @pytest.mark.parametrize(
        "dtype, kind",
        [
            ("float32", "F32"),
            ("float16", "F16"),
            ("bfloat16", "BF16"),
            ("float64", "F64"),
            ("int64", "I64"),
            ("int32", "I32"),
            ("int16", "I16"),
            ("int8", "I8"),
            ("uint8", "U8"),
            ("bool", "BOOL"),
        ],
    )
    def test_every_element_type_is_read_as_torch_reads_it(self, tmp_path, dtype, kind):
        torch = self.torch
        tensor = (torch.arange(24).reshape(2, 3, 4) % 5 - 1).abs().to(getattr(torch, dtype))
        torch.save(tensor, tmp_path / "a.pt")
        read = read_torch_file(tmp_path / "a.pt")
        assert read.kind == kind
        expected = tensor.view(torch.int16).numpy().view(np.uint16) if kind == "BF16" else tensor
        np.testing.assert_array_equal(read.array, np.asarray(expected))

    @pytest.mark.parametrize("protocol", [2, 3, 4, 5])
    def test_views_lists_and_shared_storages_are_read(self, tmp_path, protocol):
        torch = self.torch
        base = torch.arange(60, dtype=torch.float32).reshape(6, 10)
        saved = {
            "transposed": base.t(),
            "sliced": base[1:5:2, 3:],
            "listed": [base, (base[0], 3, None, True, 1.5, "text")],
            "ordered": collections.OrderedDict(a=base[2]),
            "parameter": torch.nn.Parameter(base[3]),
            "empty": torch.empty(0, 4),
            "scalar": torch.tensor(2.5),
            -7: 1 << 40,
        }
        torch.save(saved, tmp_path / "a.pt", pickle_protocol=protocol)
        read = plain(read_torch_file(tmp_path / "a.pt"))
        expected = torch.load(tmp_path / "a.pt", weights_only=False)
        assert read.keys() == expected.keys()
        for key in ("transposed", "sliced", "empty", "scalar"):
            np.testing.assert_array_equal(read[key], expected[key].numpy())
        np.testing.assert_array_equal(read["parameter"], expected["parameter"].detach().numpy())
        np.testing.assert_array_equal(read["ordered"]["a"], expected["ordered"]["a"].numpy())
        np.testing.assert_array_equal(read["listed"][0], base.numpy())
        assert read["listed"][1][1:] == (3, None, True, 1.5, "text")
        assert read[-7] == 1 << 40

    def test_a_gzipped_file_is_read(self, tmp_path):
        buffer = io.BytesIO()
        self.torch.save({"a": self.torch.ones(3)}, buffer)
        with gzip.open(tmp_path / "a.ckpt.gz", "wb") as file:
            file.write(buffer.getvalue())
        assert read_torch_file(tmp_path / "a.ckpt.gz")["a"].array.tolist() == [1, 1, 1]

    def test_a_file_of_before_torch_1_6_is_refused_with_the_remedy(self, tmp_path):
        self.torch.save(self.torch.ones(3), tmp_path / "a.pt", _use_new_zipfile_serialization=False)
        with pytest.raises(RefusedFile, match="saved again"):
            read_torch_file(tmp_path / "a.pt")

    def test_a_whole_module_is_refused_by_name(self, tmp_path):
        self.torch.save(self.torch.nn.Linear(2, 2), tmp_path / "a.pt")
        with pytest.raises(RefusedFile, match="torch.nn.modules.linear.Linear"):
            read_torch_file(tmp_path / "a.pt")
