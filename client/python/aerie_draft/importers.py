"""Makes recordings of what trainers dumped: python -m aerie_draft.importers --help.

Files of torch.save are read by importers_torch, which runs nothing in them; torch is not needed.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import sys
from collections.abc import Iterator

import numpy as np

from aerie_draft.dtypes import DType, bf16_to_float
from aerie_draft.importers_layouts import (
    TOKEN_KEYS,
    DumpedSample,
    claim_of_label,
    order_of,
    prompt_of_mask,
    sample_of_dict,
    sample_of_parts,
    split_rows,
    tensor_of,
    whole_numbers,
)
from aerie_draft.importers_torch import RefusedFile, TorchTensor, read_torch_file
from aerie_draft.recording import RecordedTensor, RecordingWriter, Target
from aerie_draft.recording_files import read_tensors
from aerie_draft.wiring import LayerIdConvention

_DICT_FILES = (".pt", ".pth", ".ckpt", ".ckpt.gz", ".safetensors")
_TENSOR_FILES = (".pt", ".pth")
_DTYPE_OF_KIND = {
    "BF16": DType.BFLOAT16,
    "F16": DType.FLOAT16,
    "F32": DType.FLOAT32,
    "F64": DType.FLOAT32,
}


def _natural(path: pathlib.Path):
    """Sorts 2 before 10."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", str(path))]


def _read(path: pathlib.Path):
    """A file's content; tensors as TorchTensor."""
    if path.suffix == ".safetensors":
        return {n: TorchTensor(kind, array) for n, (kind, array) in read_tensors(path).items()}
    if path.suffix == ".json":
        return json.loads(path.read_text())
    return read_torch_file(path)


def _token_file(folder: pathlib.Path) -> pathlib.Path | None:
    for stem in TOKEN_KEYS:
        for suffix in (*_TENSOR_FILES, ".json"):
            if (folder / (stem + suffix)).is_file():
                return folder / (stem + suffix)
    return None


def sample_folders(source: pathlib.Path) -> list[pathlib.Path]:
    """Folders with one tensor a file and the tokens beside them: `source` or those in it."""
    folders = [source, *sorted((p for p in source.iterdir() if p.is_dir()), key=_natural)]
    return [f for f in folders if _token_file(f) is not None]


def read_sample_folder(folder: pathlib.Path, hidden: int | None) -> DumpedSample:
    """From files such as aux_0.pt, aux_1.pt, final.pt and input_ids.pt (or .json)."""
    token_file = _token_file(folder)
    content = _read(token_file)
    subject = str(folder)
    tokens = whole_numbers(subject, content)
    parts = {}
    for path in folder.iterdir():
        if path.suffix not in _TENSOR_FILES or path == token_file or path.stem == "loss_mask":
            continue
        tensor = tensor_of(str(path), path.stem, _read(path))
        width = hidden or tensor.array.shape[-1]
        arrays = split_rows(str(path), path.stem, tensor.array, len(tokens), width)
        if len(arrays) != 1:
            raise RefusedFile(
                f"{path}: {len(arrays)} places in one tensor; expected one a file; save them apart"
            )
        parts[path.stem] = TorchTensor(tensor.kind, arrays[0])
    if not parts:
        raise RefusedFile(
            f"{folder}: tokens but no tensors; expected files such as aux_0.pt; save them there"
        )
    sample = sample_of_parts(subject, tokens, {name: parts[name] for name in order_of(list(parts))})
    if (mask := folder / "loss_mask.pt").is_file():
        sample.prompt_tokens = prompt_of_mask(str(mask), _read(mask), len(tokens))
    return sample


def read_samples(source: pathlib.Path, hidden: int | None) -> Iterator[tuple[str, DumpedSample]]:
    """(where from, sample) of all samples in a folder or file, in natural order."""
    if source.is_dir() and (folders := sample_folders(source)):
        for folder in folders:
            yield str(folder), read_sample_folder(folder, hidden)
        return
    files = [source]
    if source.is_dir():
        files = sorted(
            (p for p in source.rglob("*") if p.is_file() and p.name.endswith(_DICT_FILES)),
            key=_natural,
        )
    if not files:
        raise RefusedFile(
            f"{source}: no samples; expected files of one dict each ({', '.join(_DICT_FILES)}), or "
            f"folders with one tensor a file and {TOKEN_KEYS[0]}.pt or .json beside them; add the "
            "tokens if they are missing: states without tokens show nothing"
        )
    for path in files:
        yield str(path), sample_of_dict(str(path), _read(path), hidden)


def target_of(options: argparse.Namespace) -> tuple[Target, int | None]:
    """What flags and the target's config.json say, and the hidden size if they do."""
    config: dict = {}
    if options.target is not None:
        path = options.target / "config.json"
        config = json.loads(path.read_text())
        config = config.get("text_config", config)
    hidden = options.hidden_size or config.get("hidden_size")
    target = Target(
        id=options.target_id or (options.target.resolve().name if options.target else "unknown"),
        hidden_size=hidden or 0,
        num_layers=options.num_layers or config.get("num_hidden_layers", 0),
        vocab_size=config.get("vocab_size", 0),
    )
    return target, hidden


def _values(sample: DumpedSample, array: np.ndarray, dtype: DType) -> np.ndarray:
    """The array as the writer takes it: words for bf16 in bf16, else numbers."""
    if sample.kind != "BF16" or dtype is DType.BFLOAT16:
        return array
    return bf16_to_float(array)


def run(options: argparse.Namespace) -> tuple[int, list[RecordedTensor]]:
    """Writes the recording; returns how many samples it has, and its tensors."""
    target, hidden = target_of(options)
    convention = None
    if options.convention is not None:
        convention = {
            "input": LayerIdConvention.INPUT_OF_LAYER,
            "output": LayerIdConvention.OUTPUT_OF_LAYER,
        }[options.convention]
    writer, names, kind, count = None, [], "", 0
    tensors: list[RecordedTensor] = []
    for subject, sample in read_samples(options.source, hidden):
        if writer is None:
            names, kind = list(sample.rows), sample.kind
            width = next(iter(sample.rows.values())).shape[1]
            target = Target(target.id, width, target.num_layers, target.vocab_size)
            labels = [sample.labels.get(name, name) for name in names]
            if options.labels is not None:
                labels = [label.strip() for label in options.labels.split(",")]
            if len(labels) != len(names):
                raise ValueError(
                    f"{len(labels)} labels for the tensors {', '.join(names)}; expected one each, "
                    "in this order; correct --labels"
                )
            tensors = [
                RecordedTensor(n, label, claim_of_label(label, convention, target.num_layers))
                for n, label in zip(names, labels, strict=True)
            ]
            writer = RecordingWriter(
                options.output,
                target,
                tensors,
                _DTYPE_OF_KIND[kind],
                f"imported from {options.source.name}",
            )
        if list(sample.rows) != names or sample.kind != kind:
            raise RefusedFile(
                f"{subject}: tensors {', '.join(sample.rows)} of type {sample.kind}; expected "
                f"{', '.join(names)} of type {kind} as in the first sample; import them apart"
            )
        rows = {n: _values(sample, a, _DTYPE_OF_KIND[kind]) for n, a in sample.rows.items()}
        writer.add(sample.tokens, rows, sample.prompt_tokens)
        count += 1
        if count == options.limit:
            break
    writer.close()
    return count, tensors


def parse_arguments(arguments=None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m aerie_draft.importers",
        description="Make a recording for aerie-verify of hidden states that a trainer dumped. "
        "Reads folders with one torch-saved tensor a file (aux_0.pt, final.pt, input_ids.pt), and "
        "files of one dict a sample: SpecForge's .ckpt, ModelOpt's and home-made .pt, "
        "speculators' .safetensors. Nothing in a file is executed.",
    )
    parser.add_argument("source", type=pathlib.Path, metavar="SRC", help="folder or file")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="folder to make")
    parser.add_argument(
        "--labels", help="what the tensors are called, in order: embed,layer3,layer31,final"
    )
    parser.add_argument(
        "--convention",
        choices=("input", "output"),
        help="what 'layer 3' in a label names: the layer's input or its output; without it such a "
        "label claims nothing",
    )
    parser.add_argument("--target", type=pathlib.Path, help="the target's folder, for its sizes")
    parser.add_argument("--target-id", help="the target's name (default: its folder's)")
    parser.add_argument("--hidden-size", type=int, help="of the target, where no file tells it")
    parser.add_argument("--num-layers", type=int, help="of the target")
    parser.add_argument("--limit", type=int, help="samples at most (default: all)")
    options = parser.parse_args(arguments)
    for flag in ("hidden_size", "num_layers", "limit"):
        value = getattr(options, flag)
        if value is not None and value < 1:
            parser.error(f"--{flag.replace('_', '-')} is {value}; expected 1 or more; correct it")
    return options


def main(arguments=None) -> int:
    options = parse_arguments(arguments)
    try:
        count, tensors = run(options)
    except (OSError, ValueError) as fault:
        print(f"importers: {fault}", file=sys.stderr)
        return 2
    print(f"{options.output}: {count} samples, tensors {', '.join(t.name for t in tensors)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
