"""Heads that must be refused, each broken in the way that its name tells.

A name opens with the kind of report it stands for: A about what is in a head, J about hostile or
damaged files. `says` holds what a refusal must mention, one entry for each fault.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import struct
from collections.abc import Callable

import numpy as np

import safetensors_stream as stream
from head_layouts import head_config, spell
from head_plans import Fp8, HeadPlan, draft_to_target, head_tensors
from head_variants import VARIANTS
from random_heads import DEFAULT_SEED, make_target, stored_name, write_json
from safetensors_stream import Tensor

_PLAIN = VARIANTS["specforge"]
_SPECULATORS = VARIANTS["speculators_qwen3"]


@dataclasses.dataclass
class Draft:
    """A head about to be written, for an edit to break."""

    config: dict
    tensors: dict[str, Tensor]  # by name in the file

    def replace(self, name: str, array: np.ndarray, dtype: str | None = None) -> None:
        old = self.tensors.get(name)
        self.tensors[name] = stream.of_array(name, dtype or old.dtype, array)


@dataclasses.dataclass(frozen=True)
class Broken:
    says: tuple[str, ...]
    edit: Callable[[Draft], None] = lambda draft: None
    plan: HeadPlan = _PLAIN
    after: Callable[[pathlib.Path], None] = lambda folder: None  # on the written folder
    shards: int = 1


def make_broken_pair(folder: pathlib.Path, name: str, seed: int = DEFAULT_SEED) -> Broken:
    broken = BROKEN[name]
    plan = broken.plan
    tensors = [tensor.renamed(stored_name(plan, tensor.name)) for tensor in head_tensors(plan, seed)]
    draft = Draft(head_config(plan), {tensor.name: tensor for tensor in tensors})
    broken.edit(draft)
    head = folder / "head"
    head.mkdir(parents=True, exist_ok=True)
    write_json(head / "config.json", draft.config)
    stream.write_folder(head, list(draft.tensors.values()), broken.shards)
    broken.after(head)
    make_target(folder / "target", plan, seed)
    return broken


# --- Edits of a head ---


def _config(**values) -> Callable[[Draft], None]:
    return lambda draft: draft.config.update(values)


def _without(*names: str) -> Callable[[Draft], None]:
    return lambda draft: [draft.tensors.pop(spell(_PLAIN, name)) for name in names] and None


def _all(*edits: Callable[[Draft], None]) -> Callable[[Draft], None]:
    return lambda draft: [edit(draft) for edit in edits] and None


def _d2t(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Draft], None]:
    """`change` gets the target ids [Vd] and gives what is written."""

    def edit(draft: Draft) -> None:
        rows = draft.tensors["d2t"].shape[0]
        ids = draft_to_target(_PLAIN, DEFAULT_SEED)[:rows] + np.arange(rows)
        draft.replace("d2t", change(ids))

    return edit


def _repeated(ids: np.ndarray) -> np.ndarray:
    ids[5] = ids[4]
    return ids - np.arange(len(ids))


def _extra(name: str, *shape: int) -> Callable[[Draft], None]:
    return lambda draft: draft.replace(name, np.full(shape, 0.5, np.float32), "BF16")


def _mixed_names(draft: Draft) -> None:
    for part in ("mlp.up_proj", "mlp.down_proj"):
        tensor = draft.tensors.pop(f"midlayer.{part}.weight")
        draft.tensors[f"layers.0.{part}.weight"] = tensor.renamed(f"layers.0.{part}.weight")


def _no_eagle_head(draft: Draft) -> None:
    """A plain Llama layer: no fc, and projections as wide as the hidden state."""
    plan = _PLAIN
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


def _layer_gap(draft: Draft) -> None:
    draft.tensors = {
        tensor.name: tensor
        for tensor in (
            old.renamed(old.name.replace("layers.1.", "layers.2."))
            for old in draft.tensors.values()
        )
    }


def _smaller_map(draft: Draft) -> None:
    ids = draft_to_target(_PLAIN, DEFAULT_SEED)
    draft.replace("d2t", ids[:90])
    draft.config["draft_vocab_size"] = 128


def _without_scales(draft: Draft) -> None:
    for name in [name for name in draft.tensors if "scale" in name]:
        del draft.tensors[name]


def _nvfp4(draft: Draft) -> None:
    draft.config["quantization_config"] = {"quant_algo": "NVFP4", "quant_method": "modelopt"}
    name = "midlayer.mlp.up_proj.weight"
    rows, columns = draft.tensors[name].shape
    draft.replace(name, np.zeros((rows, columns // 2), np.uint8), "U8")


def _awq(draft: Draft) -> None:
    draft.config["quantization_config"] = {"quant_method": "awq", "bits": 4, "group_size": 32}
    del draft.tensors["midlayer.mlp.up_proj.weight"]
    draft.replace("midlayer.mlp.up_proj.qweight", np.zeros((64, 14), np.int32), "I32")


def _forget_residual(draft: Draft) -> None:
    del draft.config["norm_before_residual"]


def _forget_query_norm(draft: Draft) -> None:
    del draft.tensors["layers.0.self_attn.q_norm.weight"]


def _gelu_layer(draft: Draft) -> None:
    draft.config["transformer_layer_config"]["hidden_act"] = "gelu"


def _sliding_window(draft: Draft) -> None:
    draft.config["transformer_layer_config"] |= {
        "layer_types": ["sliding_attention"],
        "sliding_window": 64,
        "use_sliding_window": True,
    }


# --- Edits of the written files ---


def _only_bin(folder: pathlib.Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"PK\x03\x04 not opened by anyone")


def _weight_map(change: Callable[[dict], None]) -> Callable[[pathlib.Path], None]:
    def after(folder: pathlib.Path) -> None:
        path = folder / "model.safetensors.index.json"
        index = json.loads(path.read_text())
        change(index["weight_map"])
        path.write_text(json.dumps(index))

    return after


def _wrong_shard(weight_map: dict) -> None:
    names = sorted(set(weight_map.values()))
    weight_map["fc.weight"] = names[(names.index(weight_map["fc.weight"]) + 1) % len(names)]


def _escape(weight_map: dict) -> None:
    weight_map["fc.weight"] = "../" + weight_map["fc.weight"]


def _header(change: Callable[[dict], object]) -> Callable[[pathlib.Path], None]:
    """Rewrites the JSON header; the data stays where it is."""

    def after(folder: pathlib.Path) -> None:
        path = folder / "model.safetensors"
        content = path.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + length])
        text = json.dumps(change(header) or header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])

    return after


def _bytes(change: Callable[[bytes], bytes]) -> Callable[[pathlib.Path], None]:
    def after(folder: pathlib.Path) -> None:
        path = folder / "model.safetensors"
        path.write_bytes(change(path.read_bytes()))

    return after


def _inverted(header: dict) -> None:
    header["fc.weight"]["data_offsets"].reverse()


def _overlap(header: dict) -> None:
    header["norm.weight"]["data_offsets"] = header["midlayer.hidden_norm.weight"]["data_offsets"]


def _hole(header: dict) -> None:
    del header["norm.weight"]


_FP8 = VARIANTS["fp8_tensor_scale"]
_DEEP = VARIANTS["three_layers"]
_LONGROPE = {"rope_type": "longrope", "short_factor": [1.0] * 8, "long_factor": [2.0] * 8}

BROKEN: dict[str, Broken] = {
    # --- A: what is in a head ---
    "A1_no_lm_head": Broken(("lm_head",), _without("lm_head.weight")),
    "A4_no_map": Broken(("d2t",), _without("d2t", "t2d")),
    "A5_absolute_d2t": Broken(("absolute",), _d2t(lambda ids: ids)),
    "A5_counting_d2t": Broken(("t2d",), _d2t(lambda ids: np.arange(len(ids)))),
    "A5_d2t_past_the_vocabulary": Broken(("d2t",), _d2t(lambda ids: ids * 9)),
    "A5_d2t_repeats_an_id": Broken(("d2t",), _d2t(_repeated)),
    "A6_three_draft_vocabularies": Broken(("90", "96", "128"), _smaller_map),
    "A9_mixed_names": Broken(("midlayer", "layers.0"), _mixed_names),
    "A9_no_eagle_head": Broken(("fc",), _no_eagle_head),
    "A10_layers_with_a_gap": Broken(("layer",), _layer_gap, dataclasses.replace(_DEEP, layers=2)),
    "A12_head_dim_against_tensors": Broken(("head_dim",), _config(head_dim=48)),
    "A13_unknown_tensor": Broken(("sinks",), _extra("midlayer.self_attn.sinks", 4)),
    "A13_bias_without_tensors": Broken(("attention_bias",), _config(attention_bias=True)),
    "A14_fp8_without_scales": Broken(("scale",), _without_scales, _FP8),
    "A14_nvfp4": Broken(("NVFP4",), _nvfp4),
    "A14_awq": Broken(("awq",), _awq),
    "A15_only_a_bin": Broken(("pytorch_model.bin", "convert"), after=_only_bin),
    "A16_missing_shard": Broken(
        ("model-00002-of-00003",),
        shards=3,
        after=lambda folder: (folder / "model-00002-of-00003.safetensors").unlink(),
    ),
    "A17_index_names_the_wrong_shard": Broken(
        ("fc.weight",), shards=3, after=_weight_map(_wrong_shard)
    ),
    "A19_two_rope_bases": Broken(
        ("rope_theta",), _config(rope_parameters={"rope_type": "default", "rope_theta": 5e5})
    ),
    "A20_unknown_scaling": Broken(("longrope",), _config(rope_scaling=_LONGROPE)),
    "A22_fc_norm_without_tensors": Broken(("fc_norm",), _config(fc_norm=True)),
    "A23_two_norm_modes": Broken(
        ("norm_before_fc", "fc_norm"),
        plan=dataclasses.replace(_PLAIN, fc_norm=True, norm_before_fc=True),
    ),
    "A24_speculators_without_the_flag": Broken(
        ("norm_before_residual",), _forget_residual, _SPECULATORS
    ),
    "ambiguous_layer_ids": Broken(
        ("eagle_aux_hidden_state_layer_ids",),
        plan=dataclasses.replace(_PLAIN, layer_ids=(3, 7, 9)),
    ),
    "gelu": Broken(("hidden_act",), _config(hidden_act="gelu")),
    "sliding_window": Broken(("sliding",), _sliding_window, _SPECULATORS),
    "parallel_drafting": Broken(("mask_hidden",), _extra("mask_hidden", 1, 1, 192)),
    "medusa_heads": Broken(
        ("parallel_draft_heads",),
        _extra("parallel_draft_heads.0.medusa_layers.0.linear.weight", 64, 64),
    ),
    "unknown_key": Broken(("residual_gate",), _config(residual_gate=0.5)),
    # --- J: hostile or damaged files ---
    "J1_inverted_offsets": Broken(("fc.weight",), after=_header(_inverted)),
    "J2_huge_header": Broken(
        ("header",), after=_bytes(lambda content: struct.pack("<Q", 1 << 62) + content[8:])
    ),
    "J3_truncated": Broken(("bytes",), after=_bytes(lambda content: content[:-100])),
    "J3_trailing_bytes": Broken(("bytes",), after=_bytes(lambda content: content + b"\0" * 64)),
    "J4_overlap": Broken(("overlap",), after=_header(_overlap)),
    "J4_hole": Broken(("bytes",), after=_header(_hole)),
    "J5_index_leaves_the_folder": Broken(("../",), shards=3, after=_weight_map(_escape)),
    "J7_header_is_a_list": Broken(("header",), after=_header(lambda header: [header])),
    # --- Three faults at once: all of them must be named ---
    "three_faults_specforge": Broken(
        ("longrope", "sinks", "d2t"),
        _all(
            _config(rope_scaling=_LONGROPE),
            _extra("midlayer.self_attn.sinks", 4),
            _without("d2t", "t2d"),
        ),
    ),
    "three_faults_speculators": Broken(
        ("norm_before_residual", "q_norm", "hidden_act"),
        _all(_forget_residual, _forget_query_norm, _gelu_layer),
        _SPECULATORS,
    ),
}
