"""Ways to break a head: before it is written, and the files when they are.

Each edit of a head takes a Draft, each edit of files the folder.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import struct
from collections.abc import Callable

import numpy as np

import safetensors_stream as stream
from head_layouts import spell
from head_tensors import draft_to_target
from head_variants import VARIANTS
from random_heads import DEFAULT_SEED
from safetensors_stream import Tensor

PLAIN = VARIANTS["specforge"]  # the head that edits here know the names of


@dataclasses.dataclass
class Draft:
    """A head about to be written, for an edit to break."""

    config: dict
    tensors: dict[str, Tensor]  # by name in the file

    def replace(self, name: str, array: np.ndarray, dtype: str | None = None) -> None:
        old = self.tensors.get(name)
        self.tensors[name] = stream.of_array(name, dtype or old.dtype, array)


# --- Edits of a head ---


def set_keys(**values) -> Callable[[Draft], None]:
    return lambda draft: draft.config.update(values)


def without(*names: str) -> Callable[[Draft], None]:
    return lambda draft: [draft.tensors.pop(spell(PLAIN, name)) for name in names] and None


def every(*edits: Callable[[Draft], None]) -> Callable[[Draft], None]:
    return lambda draft: [edit(draft) for edit in edits] and None


def change_map(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Draft], None]:
    """`change` gets the target ids [Vd] and gives what is written."""

    def edit(draft: Draft) -> None:
        rows = draft.tensors["d2t"].shape[0]
        ids = draft_to_target(PLAIN, DEFAULT_SEED)[:rows] + np.arange(rows)
        draft.replace("d2t", change(ids))

    return edit


def repeated(ids: np.ndarray) -> np.ndarray:
    ids[5] = ids[4]
    return ids - np.arange(len(ids))


def add_tensor(name: str, *shape: int) -> Callable[[Draft], None]:
    return lambda draft: draft.replace(name, np.full(shape, 0.5, np.float32), "BF16")


def mixed_names(draft: Draft) -> None:
    for part in ("mlp.up_proj", "mlp.down_proj"):
        tensor = draft.tensors.pop(f"midlayer.{part}.weight")
        draft.tensors[f"layers.0.{part}.weight"] = tensor.renamed(f"layers.0.{part}.weight")


def no_eagle_head(draft: Draft) -> None:
    """A plain Llama layer: no fc, and projections as wide as the hidden state."""
    plan = PLAIN
    for name in ("fc.weight", "midlayer.hidden_norm.weight", "d2t", "t2d"):
        del draft.tensors[name]
    for part, rows in (("q", plan.heads), ("k", plan.kv_heads), ("v", plan.kv_heads)):
        shape = (rows * plan.head_dim, plan.hidden)
        name = f"midlayer.self_attn.{part}_proj.weight"
        draft.replace(name, np.full(shape, 0.1, np.float32))
    draft.tensors = {
        name.replace("midlayer.", "model.layers.0."): tensor.renamed(
            name.replace("midlayer.", "model.layers.0.")
        )
        for name, tensor in draft.tensors.items()
    }


def layer_gap(draft: Draft) -> None:
    draft.tensors = {
        tensor.name: tensor
        for tensor in (
            old.renamed(old.name.replace("layers.1.", "layers.2."))
            for old in draft.tensors.values()
        )
    }


def smaller_map(draft: Draft) -> None:
    ids = draft_to_target(PLAIN, DEFAULT_SEED)
    draft.replace("d2t", ids[:90])
    draft.config["draft_vocab_size"] = 128


def without_scales(draft: Draft) -> None:
    for name in [name for name in draft.tensors if "scale" in name]:
        del draft.tensors[name]


def nvfp4(draft: Draft) -> None:
    draft.config["quantization_config"] = {"quant_algo": "NVFP4", "quant_method": "modelopt"}
    name = "midlayer.mlp.up_proj.weight"
    rows, columns = draft.tensors[name].shape
    draft.replace(name, np.zeros((rows, columns // 2), np.uint8), "U8")


def awq(draft: Draft) -> None:
    draft.config["quantization_config"] = {"quant_method": "awq", "bits": 4, "group_size": 32}
    del draft.tensors["midlayer.mlp.up_proj.weight"]
    draft.replace("midlayer.mlp.up_proj.qweight", np.zeros((64, 14), np.int32), "I32")


def forget_residual(draft: Draft) -> None:
    del draft.config["norm_before_residual"]


def forget_query_norm(draft: Draft) -> None:
    del draft.tensors["layers.0.self_attn.q_norm.weight"]


def gelu_layer(draft: Draft) -> None:
    draft.config["transformer_layer_config"]["hidden_act"] = "gelu"


def sliding_window(draft: Draft) -> None:
    draft.config["transformer_layer_config"] |= {
        "layer_types": ["sliding_attention"],
        "sliding_window": 64,
        "use_sliding_window": True,
    }


# --- Edits of the written files ---


def only_bin(folder: pathlib.Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"PK\x03\x04 not opened by anyone")


def change_index(change: Callable[[dict], None]) -> Callable[[pathlib.Path], None]:
    def after(folder: pathlib.Path) -> None:
        path = folder / "model.safetensors.index.json"
        index = json.loads(path.read_text())
        change(index["weight_map"])
        path.write_text(json.dumps(index))

    return after


def wrong_shard(weight_map: dict) -> None:
    names = sorted(set(weight_map.values()))
    weight_map["fc.weight"] = names[(names.index(weight_map["fc.weight"]) + 1) % len(names)]


def escape(weight_map: dict) -> None:
    weight_map["fc.weight"] = "../" + weight_map["fc.weight"]


def change_header(change: Callable[[dict], object]) -> Callable[[pathlib.Path], None]:
    """Rewrites the JSON header; the data stays where it is."""

    def after(folder: pathlib.Path) -> None:
        path = folder / "model.safetensors"
        content = path.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + length])
        text = json.dumps(change(header) or header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])

    return after


def change_bytes(change: Callable[[bytes], bytes]) -> Callable[[pathlib.Path], None]:
    def after(folder: pathlib.Path) -> None:
        path = folder / "model.safetensors"
        path.write_bytes(change(path.read_bytes()))

    return after


def inverted(header: dict) -> None:
    header["fc.weight"]["data_offsets"].reverse()


def overlap(header: dict) -> None:
    header["norm.weight"]["data_offsets"] = header["midlayer.hidden_norm.weight"]["data_offsets"]


def hole(header: dict) -> None:
    del header["norm.weight"]
