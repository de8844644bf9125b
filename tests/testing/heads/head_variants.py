"""The registry of named heads: every producer's layout, and every setting that changes the maths.

Tiny ones: all of them are written and judged in seconds. Published sizes: published_sizes.py.
"""

from __future__ import annotations

import dataclasses

from head_plans import Fp8, HeadPlan, Latent

_YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 32}
_LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}

# Full vocabulary, as such heads have. 1e-6: the norms inside are built with that eps by the
# training code, whatever config.json says.
_LATENT = HeadPlan(layout="torchspec", latent=Latent(), kv_heads=4, draft_vocab=320, eps=1e-6)

_SPECULATORS = HeadPlan(layout="speculators", own_embedding=True, rope_theta=500000.0)

VARIANTS: dict[str, HeadPlan] = {
    # --- Producers ---
    "safeailab": HeadPlan(layout="safeailab", dtype="F16", rope_theta=None),
    "safeailab_full_vocabulary": HeadPlan(
        layout="safeailab", rope_theta=None, draft_vocab=320, config={"num_hidden_layers": 40}
    ),
    "safeailab_own_width": HeadPlan(
        layout="safeailab",
        rope_theta=None,
        hidden=48,
        target_hidden=80,
        head_dim=12,
        own_embedding=True,
    ),
    "specforge": HeadPlan(),
    "specforge_export": HeadPlan(layout="specforge_export", own_embedding=True, rope_theta=50000.0),
    "specforge_sharded": HeadPlan(dtype="F32"),
    "speculators_llama": dataclasses.replace(_SPECULATORS, norm_before_residual=True),
    "speculators_qwen3": dataclasses.replace(_SPECULATORS, qk_norm=True),
    "speculators_bias": dataclasses.replace(_SPECULATORS, qkv_bias=True, o_bias=True),
    "modelopt": HeadPlan(
        layout="modelopt",
        t2d=False,
        rope={"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 2048},
    ),
    "modelopt_deep": HeadPlan(layout="modelopt", t2d=False, layers=3),
    "megatron": HeadPlan(layout="megatron", t2d=False),
    "megatron_deep": HeadPlan(layout="megatron", t2d=False, layers=2),
    "angelslim": HeadPlan(layout="angelslim", own_embedding=True, rope_theta=1000000.0),
    "torchspec": HeadPlan(layout="torchspec"),
    "torchspec_mla": dataclasses.replace(
        _LATENT,
        rope_theta=50000.0,
        rope=_YARN
        | {
            "type": "yarn",
            "factor": 64.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
        },
    ),
    "nemo": HeadPlan(layout="nemo", own_embedding=True, fc_norm=True),
    "model_midlayer": HeadPlan(layout="model_midlayer"),
    "sglang_deep": HeadPlan(layout="sglang_deep", layers=2),
    # --- Norms and residual ---
    "norm_before_residual": HeadPlan(norm_before_residual=True),
    "norm_before_fc": HeadPlan(norm_before_fc=True),
    "fc_norm": HeadPlan(fc_norm=True),
    "aux_norm_names": HeadPlan(fc_norm=True, aux_norm_names=True),
    "norm_output": dataclasses.replace(_SPECULATORS, norm_output=True),
    "fc_norm_norm_output": dataclasses.replace(_SPECULATORS, fc_norm=True, norm_output=True),
    # In the meaning of servers: SpecForge's class of that name fed the un-normed output back.
    "specforge_norm_output": HeadPlan(fc_norm=True, norm_output=True),
    # --- Attention ---
    "qkv_bias": HeadPlan(qkv_bias=True),
    "head_dim": HeadPlan(heads=8, kv_heads=4, head_dim=20),
    "one_kv_head": HeadPlan(kv_heads=1),
    "qk_norm_head_dim": dataclasses.replace(
        _SPECULATORS, qk_norm=True, heads=8, kv_heads=2, head_dim=24
    ),
    "mla": _LATENT,
    "mla_fc_norm_norm_output": dataclasses.replace(_LATENT, fc_norm=True, norm_output=True),
    "mla_without_q_lora": dataclasses.replace(_LATENT, latent=Latent(q_lora=None)),
    "mla_reduced_vocabulary": dataclasses.replace(_LATENT, draft_vocab=96),
    # --- Captures, layers, widths ---
    "one_capture": dataclasses.replace(_SPECULATORS, captures=1),
    "four_captures": dataclasses.replace(_SPECULATORS, captures=4),
    "five_captures": dataclasses.replace(_SPECULATORS, captures=5),
    "final_norm_capture": HeadPlan(layout="modelopt", use_aux=False, t2d=False),
    "three_layers": dataclasses.replace(_SPECULATORS, layers=3),
    "two_layers_qk_norm": dataclasses.replace(_SPECULATORS, layers=2, qk_norm=True),
    # --- Vocabulary and embedding ---
    "own_embedding": HeadPlan(own_embedding=True),
    "full_vocabulary": HeadPlan(draft_vocab=320),
    "borrowed_lm_head": HeadPlan(draft_vocab=320, own_lm_head=False),
    "tied": HeadPlan(
        draft_vocab=320,
        own_embedding=True,
        own_lm_head=False,
        config={"tie_word_embeddings": True, "draft_vocab_size": 320},
    ),
    "d2t_int32": HeadPlan(d2t_dtype="I32", t2d=False),
    "multimodal_target": HeadPlan(target_kind="multimodal"),
    # --- Rotation ---
    "rope_unset": HeadPlan(rope_theta=None),
    "rope_linear": HeadPlan(rope={"type": "linear", "factor": 4.0}),
    "rope_dynamic": HeadPlan(max_positions=16, rope={"rope_type": "dynamic", "factor": 4.0}),
    "rope_llama3": HeadPlan(rope_theta=500000.0, rope=_LLAMA3),
    "rope_yarn": HeadPlan(rope=_YARN),
    # Long enough for both ends of the ramp to lie within the head's channels.
    "rope_yarn_mscale": HeadPlan(
        rope=_YARN
        | {
            "original_max_position_embeddings": 512,
            "beta_fast": 16,
            "beta_slow": 2,
            "mscale": 1.4,
            "mscale_all_dim": 0.6,
        }
    ),
    "rope_yarn_attention_factor": HeadPlan(rope=_YARN | {"attention_factor": 1.3}),
    "rope_yarn_untruncated": HeadPlan(
        rope=_YARN | {"original_max_position_embeddings": 512, "truncate": False}
    ),
    "rope_parameters": dataclasses.replace(_SPECULATORS, rope=_LLAMA3),
    "rope_mrope": HeadPlan(rope={"rope_type": "mrope", "mrope_section": [2, 3, 3]}),
    "partial_rotary": HeadPlan(partial_rotary=0.5),
    # --- Numbers ---
    "fp8_tensor_scale": HeadPlan(layout="modelopt", t2d=False, fp8=Fp8()),
    "fp8_channel_scale": HeadPlan(layout="modelopt", t2d=False, fp8=Fp8(per_channel=True)),
    "fp8_e5m2": HeadPlan(layout="modelopt", t2d=False, fp8=Fp8("F8_E5M2", flat=True)),
    "fp8_scale_inv": HeadPlan(
        layout="modelopt",
        t2d=False,
        fp8=Fp8(per_channel=True, scale_suffix="_scale_inv", flat=True),
    ),
}

# Nearly every setting and every kind of tensor at once.
VARIANTS["all_settings"] = dataclasses.replace(
    _SPECULATORS,
    captures=4,
    layers=2,
    heads=8,
    kv_heads=2,
    head_dim=24,
    qk_norm=True,
    qkv_bias=True,
    o_bias=True,
    norm_before_residual=True,
    fc_norm=True,
    norm_output=True,
    rope=_LLAMA3,
)

SHARDS = {"specforge_sharded": 3}
