"""Reads files that torch.save wrote, without torch and without running anything in them.

Such a file is a zip with a pickle in it, and unpickling calls whatever the pickle names: opening a
stranger's dump with torch.load can run a stranger's program. Here nothing is unpickled: tensors,
their storages, OrderedDict and plain containers are understood, and everything else is refused by
its name.
"""

from __future__ import annotations

import gzip
import io
import math
import pathlib
import zipfile
import zlib

import numpy as np

from aerie_draft.importers_pickle import Name, PickleWalker, RefusedFile
from aerie_draft.recording_files import STORAGE

_STORAGES = {
    "torch.FloatStorage": "F32",
    "torch.HalfStorage": "F16",
    "torch.BFloat16Storage": "BF16",
    "torch.DoubleStorage": "F64",
    "torch.LongStorage": "I64",
    "torch.IntStorage": "I32",
    "torch.ShortStorage": "I16",
    "torch.CharStorage": "I8",
    "torch.ByteStorage": "U8",
    "torch.BoolStorage": "BOOL",
}
_TENSOR = "torch._utils._rebuild_tensor_v2"
_PARAMETER = "torch._utils._rebuild_parameter"
_ORDERED_DICT = "collections.OrderedDict"
_KNOWN = frozenset([*_STORAGES, _TENSOR, _PARAMETER, _ORDERED_DICT])

_MAX_PICKLE_BYTES = 64 << 20
_MAX_UNZIPPED_BYTES = 16 << 30


class TorchTensor:
    """A tensor of the file: its element type by the name that safetensors has, and its values."""

    def __init__(self, kind: str, array: np.ndarray):
        self.kind = kind
        self.array = array  # bf16 as uint16 words


class _Storage:
    """The elements that tensors are views of; only the archive makes one, never the pickle."""

    def __init__(self, kind: str, elements: np.ndarray):
        self.kind = kind
        self.elements = elements


def read_torch_file(path: pathlib.Path):
    """What torch.save was given: tensors as TorchTensor inside dicts, lists and tuples.

    A name ending with .gz is decompressed first. RefusedFile for anything but a zip of torch.save
    with plain containers of tensors; OSError when the file cannot be read.
    """
    path = pathlib.Path(path)

    def refuse(seen: str, expected: str, remedy: str) -> RefusedFile:
        return RefusedFile(f"{path}: {seen}; expected {expected}; {remedy}")

    source: io.BytesIO | pathlib.Path = path
    try:
        if path.name.endswith(".gz"):
            with gzip.open(path) as file:
                data = file.read(_MAX_UNZIPPED_BYTES + 1)
            if len(data) > _MAX_UNZIPPED_BYTES:
                raise refuse("more than 16 GiB unzipped", "less", "split the file")
            source = io.BytesIO(data)
        archive = zipfile.ZipFile(source)
    except (EOFError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile):
        raise refuse(
            "this is no zip archive",
            "a file of torch.save",
            "a file of torch before 1.6 must be saved again with a newer one",
        ) from None
    with archive:
        try:
            return _Reader(archive, refuse).read()
        except (RuntimeError, zipfile.BadZipFile) as fault:  # RuntimeError: encrypted
            raise refuse(
                f"the archive cannot be read ({fault})", "a sound one", "copy it again"
            ) from None


class _Reader:
    def __init__(self, archive: zipfile.ZipFile, refuse):
        self._archive = archive
        self._refuse = refuse
        self._storages: dict[str, np.ndarray] = {}
        pickles = [n for n in archive.namelist() if n.count("/") == 1 and n.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise refuse(
                f"{len(pickles)} entries called data.pkl",
                "one, as torch.save writes it",
                "save the tensors again with torch.save",
            )
        self._root = pickles[0][: -len("data.pkl")]

    def read(self):
        if self._root + "byteorder" in self._archive.namelist():
            order = self._entry("byteorder", 16)
            if order != b"little":
                raise self._refuse(f"byte order {order!r}", "little", "save it on such a machine")
        pickle = self._entry("data.pkl", _MAX_PICKLE_BYTES)
        try:
            return PickleWalker(_KNOWN, self._storage, self._made_by, self._refuse).run(pickle)
        except RefusedFile:
            raise
        except (AttributeError, IndexError, KeyError, TypeError, UnicodeError, ValueError) as fault:
            # A pickle that torch wrote keeps its stack in order; this one did not.
            raise self._refuse(
                f"its pickle is malformed ({type(fault).__name__}: {fault})",
                "one that torch.save wrote",
                "save the tensors again",
            ) from None

    def _entry(self, name: str, most: int) -> bytes:
        info = self._archive.getinfo(self._root + name)
        if info.compress_type != zipfile.ZIP_STORED:  # A small file could unpack to any size.
            raise self._refuse(
                f"its entry {name} is compressed", "none to be", "save it again with torch.save"
            )
        if info.file_size > most:
            raise self._refuse(
                f"its entry {name} has {info.file_size} bytes", f"at most {most}", "split the file"
            )
        return self._archive.read(info)

    def _storage(self, description) -> _Storage:
        word, kind, key, _, count = description
        if word != "storage" or type(key) is not str or not key.isascii() or not key.isdigit():
            raise ValueError("a persistent id that is no storage")
        kind = _STORAGES[kind.name]
        if key not in self._storages:
            data = self._entry(f"data/{key}", _MAX_UNZIPPED_BYTES)
            self._storages[key] = np.frombuffer(data, np.uint8)
        data = self._storages[key]
        if type(count) is not int or count * STORAGE[kind].itemsize != len(data):
            raise ValueError(f"storage {key} has {len(data)} bytes for {count} elements")
        return _Storage(kind, data.view(STORAGE[kind]))

    def _made_by(self, function: Name, arguments: tuple):
        if function.name == _ORDERED_DICT:
            if arguments:
                raise ValueError("an OrderedDict with arguments")
            return {}
        if function.name == _PARAMETER:
            return arguments[0]
        if function.name != _TENSOR:
            raise TypeError(f"a call of {function.name}")
        storage, offset, shape, strides = arguments[:4]
        if not isinstance(storage, _Storage):
            raise TypeError("a tensor of what is no storage")
        kind, elements = storage.kind, storage.elements
        numbers = (offset, *shape, *strides)
        if len(shape) != len(strides) or any(type(n) is not int or n < 0 for n in numbers):
            raise ValueError(f"a tensor of shape {shape} with strides {strides}")
        # A stride of 0 would let a few bytes stand for a tensor of any size.
        if math.prod(shape) > len(elements):
            raise ValueError(f"a tensor of shape {shape} over {len(elements)} elements")
        last = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        if math.prod(shape) == 0:
            return TorchTensor(kind, np.empty(shape, STORAGE[kind]))
        if last >= len(elements):
            raise ValueError(f"a tensor that ends at element {last} of {len(elements)}")
        size = STORAGE[kind].itemsize
        view = np.lib.stride_tricks.as_strided(
            elements[offset:], shape, [s * size for s in strides], writeable=False
        )
        return TorchTensor(kind, view)
