"""Heads that must be refused, each broken in the way that its name tells.

A name opens with the kind of report it stands for: A about what is in a head, J about hostile or
damaged files. `says` holds what a refusal must mention, one entry for each fault.
"""

from __future__ import annotations

import dataclasses
import pathlib
import struct
from collections.abc import Callable

import numpy as np

import head_edits as edits
import safetensors_stream as stream
from head_edits import PLAIN, Draft
from head_layouts import head_config
from head_plans import HeadPlan
from head_tensors import head_tensors
from head_variants import VARIANTS
from random_heads import DEFAULT_SEED, make_target, stored_name, write_json

_SPECULATORS = VARIANTS["speculators_qwen3"]


@dataclasses.dataclass(frozen=True)
class Broken:
    says: tuple[str, ...]
    edit: Callable[[Draft], None] = lambda draft: None
    plan: HeadPlan = PLAIN
    after: Callable[[pathlib.Path], None] = lambda folder: None  # on the written folder
    shards: int = 1


def make_broken_pair(folder: pathlib.Path, name: str, seed: int = DEFAULT_SEED) -> Broken:
    broken = BROKEN[name]
    plan = broken.plan
    tensors = [
        tensor.renamed(stored_name(plan, tensor.name)) for tensor in head_tensors(plan, seed)
    ]
    draft = Draft(head_config(plan), {tensor.name: tensor for tensor in tensors})
    broken.edit(draft)
    head = folder / "head"
    head.mkdir(parents=True, exist_ok=True)
    write_json(head / "config.json", draft.config)
    stream.write_folder(head, list(draft.tensors.values()), broken.shards)
    broken.after(head)
    make_target(folder / "target", plan, seed)
    return broken


_FP8 = VARIANTS["fp8_tensor_scale"]
_DEEP = VARIANTS["three_layers"]
_LONGROPE = {"rope_type": "longrope", "short_factor": [1.0] * 8, "long_factor": [2.0] * 8}

BROKEN: dict[str, Broken] = {
    # --- A: what is in a head ---
    "A1_no_lm_head": Broken(("lm_head",), edits.without("lm_head.weight")),
    "A4_no_map": Broken(("d2t",), edits.without("d2t", "t2d")),
    "A5_absolute_d2t": Broken(("absolute",), edits.change_map(lambda ids: ids)),
    "A5_counting_d2t": Broken(("t2d",), edits.change_map(lambda ids: np.arange(len(ids)))),
    "A5_d2t_past_the_vocabulary": Broken(("d2t",), edits.change_map(lambda ids: ids * 9)),
    "A5_d2t_repeats_an_id": Broken(("d2t",), edits.change_map(edits.repeated)),
    "A6_three_draft_vocabularies": Broken(("90", "96", "128"), edits.smaller_map),
    "A9_mixed_names": Broken(("midlayer", "layers.0"), edits.mixed_names),
    "A9_no_eagle_head": Broken(("fc",), edits.no_eagle_head),
    "A10_layers_with_a_gap": Broken(
        ("layer",), edits.layer_gap, dataclasses.replace(_DEEP, layers=2)
    ),
    "A12_head_dim_against_tensors": Broken(("head_dim",), edits.set_keys(head_dim=48)),
    "A13_unknown_tensor": Broken(("sinks",), edits.add_tensor("midlayer.self_attn.sinks", 4)),
    "A13_bias_without_tensors": Broken(("attention_bias",), edits.set_keys(attention_bias=True)),
    "A14_fp8_without_scales": Broken(("scale",), edits.without_scales, _FP8),
    "A14_nvfp4": Broken(("NVFP4",), edits.nvfp4),
    "A14_awq": Broken(("awq",), edits.awq),
    "A15_only_a_bin": Broken(("pytorch_model.bin", "convert"), after=edits.only_bin),
    "A16_missing_shard": Broken(
        ("model-00002-of-00003",),
        shards=3,
        after=lambda folder: (folder / "model-00002-of-00003.safetensors").unlink(),
    ),
    "A17_index_names_the_wrong_shard": Broken(
        ("fc.weight",), shards=3, after=edits.change_index(edits.wrong_shard)
    ),
    "A19_two_rope_bases": Broken(
        ("rope_theta",), edits.set_keys(rope_parameters={"rope_type": "default", "rope_theta": 5e5})
    ),
    "A20_unknown_scaling": Broken(("longrope",), edits.set_keys(rope_scaling=_LONGROPE)),
    "A22_fc_norm_without_tensors": Broken(("fc_norm",), edits.set_keys(fc_norm=True)),
    "A23_two_norm_modes": Broken(
        ("norm_before_fc", "fc_norm"),
        plan=dataclasses.replace(PLAIN, fc_norm=True, norm_before_fc=True),
    ),
    "A24_speculators_without_the_flag": Broken(
        ("norm_before_residual",), edits.forget_residual, _SPECULATORS
    ),
    "ambiguous_layer_ids": Broken(
        ("eagle_aux_hidden_state_layer_ids",),
        plan=dataclasses.replace(PLAIN, layer_ids=(3, 7, 9)),
    ),
    "gelu": Broken(("hidden_act",), edits.set_keys(hidden_act="gelu")),
    "sliding_window": Broken(("sliding",), edits.sliding_window, _SPECULATORS),
    "parallel_drafting": Broken(("mask_hidden",), edits.add_tensor("mask_hidden", 1, 1, 192)),
    "medusa_heads": Broken(
        ("parallel_draft_heads",),
        edits.add_tensor("parallel_draft_heads.0.medusa_layers.0.linear.weight", 64, 64),
    ),
    "unknown_key": Broken(("residual_gate",), edits.set_keys(residual_gate=0.5)),
    # --- J: hostile or damaged files ---
    "J1_inverted_offsets": Broken(("fc.weight",), after=edits.change_header(edits.inverted)),
    "J2_huge_header": Broken(
        ("header",),
        after=edits.change_bytes(lambda content: struct.pack("<Q", 1 << 62) + content[8:]),
    ),
    "J3_truncated": Broken(("bytes",), after=edits.change_bytes(lambda content: content[:-100])),
    "J3_trailing_bytes": Broken(
        ("bytes",), after=edits.change_bytes(lambda content: content + b"\0" * 64)
    ),
    "J4_overlap": Broken(("inside the tensor",), after=edits.change_header(edits.overlap)),
    "J4_hole": Broken(("hole",), after=edits.change_header(edits.hole)),
    "J5_index_leaves_the_folder": Broken(
        ("../",), shards=3, after=edits.change_index(edits.escape)
    ),
    "J7_header_is_a_list": Broken(("header",), after=edits.change_header(lambda header: [header])),
    # --- Three faults at once: all of them must be named ---
    "three_faults_specforge": Broken(
        ("longrope", "sinks", "d2t"),
        edits.every(
            edits.set_keys(rope_scaling=_LONGROPE),
            edits.add_tensor("midlayer.self_attn.sinks", 4),
            edits.without("d2t", "t2d"),
        ),
    ),
    "three_faults_speculators": Broken(
        ("norm_before_residual", "q_norm", "hidden_act"),
        edits.every(edits.forget_residual, edits.forget_query_norm, edits.gelu_layer),
        _SPECULATORS,
    ),
}
