"""No setting and no tensor of a head is left out: changing any one of them is noticed."""

from __future__ import annotations

import pytest

import head_logits_tool
import mutations
from closeness import FLOAT32_AGAINST_FLOAT32
from head_tensors import head_tensors
from head_variants import VARIANTS
from mutations import NOTICED
from random_heads import DEFAULT_SEED, stored_name
from variant_oracles import DEPTHS

# (variant, what to merge into its config.json). Each changes the maths or asks for something that
# the file cannot give.
FLIPS = [
    ("specforge", {"norm_before_residual": True}),
    ("specforge", {"norm_before_fc": True}),
    ("specforge", {"fc_norm": True}),
    ("specforge", {"norm_output": True}),
    ("specforge", {"rms_norm_eps": 1e-3}),
    ("specforge", {"rope_theta": 500000.0}),
    ("specforge", {"rope_scaling": {"type": "linear", "factor": 2.0}}),
    ("specforge", {"partial_rotary_factor": 0.5}),
    ("specforge", {"hidden_act": "gelu"}),
    ("specforge", {"mlp_bias": True}),
    ("specforge", {"logit_scale": 0.5}),
    ("specforge", {"sliding_window": 8}),
    ("specforge", {"eagle_config": {"use_aux_hidden_state": False}}),
    # The same shapes, other heads.
    ("specforge", {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 8}),
    ("fc_norm", {"fc_norm": False}),
    ("norm_before_fc", {"norm_before_fc": False}),
    ("aux_norm_names", {"use_aux_norm": False}),
    ("speculators_llama", {"norm_before_residual": False}),
    ("norm_output", {"norm_output": False}),
    ("speculators_qwen3", {"transformer_layer_config": {"rms_norm_eps": 1e-3}}),
    ("rope_linear", {"rope_scaling": {"factor": 3.0}}),
    ("rope_dynamic", {"rope_scaling": {"factor": 3.0}}),
    ("rope_dynamic", {"max_position_embeddings": 20}),
    ("rope_llama3", {"rope_scaling": {"factor": 4.0}}),
    ("rope_llama3", {"rope_scaling": {"low_freq_factor": 2.0}}),
    ("rope_llama3", {"rope_scaling": {"high_freq_factor": 8.0}}),
    ("rope_llama3", {"rope_scaling": {"original_max_position_embeddings": 128}}),
    ("rope_yarn", {"rope_scaling": {"factor": 4.0}}),
    ("rope_yarn", {"rope_scaling": {"original_max_position_embeddings": 128}}),
    ("rope_yarn_mscale", {"rope_scaling": {"beta_fast": 64}}),
    ("rope_yarn_mscale", {"rope_scaling": {"beta_slow": 0.5}}),
    ("rope_yarn_mscale", {"rope_scaling": {"mscale": 1.0}}),
    ("rope_yarn_mscale", {"rope_scaling": {"mscale_all_dim": 1.0}}),
    ("rope_yarn_untruncated", {"rope_scaling": {"truncate": True}}),
    ("rope_yarn_attention_factor", {"rope_scaling": {"attention_factor": 1.0}}),
    ("rope_parameters", {"transformer_layer_config": {"rope_parameters": {"rope_theta": 1e4}}}),
    ("rope_parameters", {"transformer_layer_config": {"rope_parameters": {"factor": 4.0}}}),
    ("partial_rotary", {"partial_rotary_factor": 0.25}),
    ("torchspec_mla", {"rope_scaling": {"mscale_all_dim": 0.5}}),
    ("torchspec_mla", {"rope_scaling": {"mscale": 0.5}}),
    ("torchspec_mla", {"rope_theta": 10000.0}),
    ("torchspec_mla", {"kv_lora_rank": 16}),
    ("torchspec_mla", {"qk_nope_head_dim": 12, "v_head_dim": 16}),
    ("final_norm_capture", {"eagle_config": {"use_aux_hidden_state": True}}),
]


def _names(flip) -> str:
    variant, change = flip
    while isinstance(change, dict):
        key, change = next(iter(change.items()))
    return f"{variant}-{key}"


@pytest.mark.parametrize("flip", FLIPS, ids=_names)
def test_the_reference_notices_another_setting(case_of, tmp_path, flip):
    head = mutations.copy_head(case_of(flip[0]), tmp_path)
    mutations.edit_config(head, flip[1])
    assert mutations.reference_moves(case_of(flip[0]), head) > NOTICED


@pytest.mark.variants
@pytest.mark.parametrize("flip", FLIPS, ids=_names)
def test_the_server_notices_another_setting(served, case_of, binaries, tmp_path, flip):
    case = case_of(flip[0])
    head = mutations.copy_head(case, tmp_path)
    mutations.edit_config(head, flip[1])
    assert mutations.server_moves(case, head, binaries, served(flip[0], "float32")) > NOTICED


@pytest.mark.variants
def test_the_server_does_not_notice_a_copy(served, case_of, binaries, tmp_path):
    """The counterpart of all others here: a program that never repeats itself would pass them."""
    case = case_of("specforge")
    head = mutations.copy_head(case, tmp_path)
    moves = mutations.server_moves(case, head, binaries, served("specforge", "float32"))
    assert moves <= FLOAT32_AGAINST_FLOAT32


# --- Tensors ---


def _stored_tensors(variant: str, part: str = "") -> list[tuple[str, str]]:
    plan = VARIANTS[variant]
    names = [stored_name(plan, tensor.name) for tensor in head_tensors(plan, DEFAULT_SEED)]
    return [(variant, name) for name in names if part in name]


TENSORS = [
    *_stored_tensors("all_settings"),
    *_stored_tensors("torchspec_mla"),
    *_stored_tensors("norm_before_fc", "input_norm"),
    *_stored_tensors("fp8_tensor_scale", "weight_scale"),
]

# A head without these is a whole one too, if perhaps another.
OPTIONAL = ("embed_tokens.weight", ".bias", "t2d")


def _removable(names):
    return [pair for pair in names if not pair[1].endswith("t2d")]


@pytest.mark.parametrize("variant, name", _removable(TENSORS))
def test_the_reference_notices_a_missing_tensor(case_of, tmp_path, variant, name):
    head = mutations.copy_head(case_of(variant), tmp_path)
    mutations.remove_tensor(head, name)
    moves = mutations.reference_moves(case_of(variant), head)
    if name.endswith(OPTIONAL) or "weight_scale" in name:
        assert moves > NOTICED
    else:
        assert moves == mutations.REFUSED


@pytest.mark.parametrize("variant, name", _removable(TENSORS))
def test_the_reference_notices_other_numbers(case_of, tmp_path, variant, name):
    case = case_of(variant)
    head = mutations.copy_head(case, tmp_path)
    mutations.perturb_tensor(head, name, int(case.reference.draft(1).draft_ids[0, 0]))
    assert mutations.reference_moves(case, head) > NOTICED


@pytest.mark.variants
@pytest.mark.parametrize("variant, name", [pair for pair in TENSORS if "t2d" not in pair[1]])
def test_inspect_refuses_a_head_without_one_of_its_tensors(
    served, case_of, binaries, inspector, tmp_path, variant, name
):
    case = case_of(variant)
    head = mutations.copy_head(case, tmp_path)
    mutations.remove_tensor(head, name)
    report = head_logits_tool.inspect(inspector, head, case.target)
    if report["ok"]:
        # With a full vocabulary the target's output matrix serves as well, if not as the same.
        spare = (*OPTIONAL, "lm_head.weight") if case.plan.full_vocabulary else OPTIONAL
        assert name.endswith(spare), f"{name} is missing and inspect says that the head is whole"
        assert mutations.server_moves(case, head, binaries, served(variant, "float32")) > NOTICED
    else:
        stem = name.removesuffix("_scale").removesuffix(".weight").removesuffix(".bias")
        assert any(stem.rsplit(".", 1)[-1] in error for error in report["errors"])


@pytest.mark.variants
@pytest.mark.parametrize("variant, name", TENSORS)
def test_the_server_notices_other_numbers(served, case_of, binaries, tmp_path, variant, name):
    case = case_of(variant)
    head = mutations.copy_head(case, tmp_path)
    mutations.perturb_tensor(head, name, int(case.reference.draft(1).draft_ids[0, 0]))
    assert mutations.server_moves(case, head, binaries, served(variant, "float32")) > NOTICED


def test_the_reference_does_not_notice_a_copy(case_of, tmp_path):
    head = mutations.copy_head(case_of("all_settings"), tmp_path)
    assert mutations.reference_moves(case_of("all_settings"), head) == 0.0
    assert DEPTHS > 1  # the fed-back output is only felt from depth 2 on
