"""Groups of keys of config.json that several producers of heads write alike."""

from __future__ import annotations

from head_plans import HeadPlan

TORCH_DTYPES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}


def after_layer_ids(plan: HeadPlan) -> list[int]:
    return list(plan.layer_ids or [boundary - 1 for boundary in plan.boundaries])


def boundary_ids(plan: HeadPlan) -> list[int]:
    return list(plan.layer_ids or plan.boundaries)


def sizes(plan: HeadPlan) -> dict:
    return {
        "hidden_size": plan.hidden,
        "intermediate_size": plan.intermediate,
        "num_attention_heads": plan.heads,
        "num_key_value_heads": plan.kv_heads,
        "num_hidden_layers": plan.layers,
        "hidden_act": "silu",
        "rms_norm_eps": plan.eps,
        "max_position_embeddings": plan.max_positions,
        "vocab_size": plan.vocab,
        "initializer_range": 0.02,
        "use_cache": True,
    }


def vocabulary(plan: HeadPlan) -> dict:
    draft = plan.draft_vocab if plan.own_lm_head else None
    return {
        "draft_vocab_size": draft,
        "tie_word_embeddings": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "torch_dtype": TORCH_DTYPES[plan.dtype],
    }


def rope_scaling(plan: HeadPlan) -> dict:
    """The older spelling: scaling in an object, the base beside it."""
    scaling = dict(plan.rope) if plan.rope else None
    config: dict = {"rope_scaling": scaling}
    if plan.rope_theta is not None:
        config["rope_theta"] = plan.rope_theta
    if plan.partial_rotary is not None:
        config["partial_rotary_factor"] = plan.partial_rotary
    return config


def rope_parameters(plan: HeadPlan) -> dict:
    """The newer spelling: all in one object."""
    parameters = {"rope_type": "default"} | dict(plan.rope or {})
    if plan.rope_theta is not None:
        parameters["rope_theta"] = plan.rope_theta
    if plan.partial_rotary is not None:
        parameters["partial_rotary_factor"] = plan.partial_rotary
    return {"rope_parameters": parameters}


def flags(plan: HeadPlan) -> dict:
    """Those that are set; a producer that knows none of them writes none."""
    flags = {
        "norm_before_residual": plan.norm_before_residual,
        "norm_before_fc": plan.norm_before_fc,
        "use_aux_norm" if plan.aux_norm_names else "fc_norm": plan.fc_norm,
        "norm_output": plan.norm_output,
    }
    config = {name: True for name, is_set in flags.items() if is_set}
    if plan.target_hidden != plan.hidden:
        config["target_hidden_size"] = plan.target_hidden
    return config


def latent(plan: HeadPlan) -> dict:
    """Keys of a DeepSeek config. Those of experts mean nothing to a head, whose MLP is dense."""
    sizes = plan.latent
    return {
        "model_type": "kimi_k2",
        "q_lora_rank": sizes.q_lora,
        "kv_lora_rank": sizes.kv_lora,
        "qk_nope_head_dim": sizes.nope,
        "qk_rope_head_dim": sizes.rope,
        "v_head_dim": sizes.v,
        "num_key_value_heads": plan.heads,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
        "moe_intermediate_size": 48,
        "n_routed_experts": 8,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "n_group": 1,
        "topk_group": 1,
        "topk_method": "noaux_tc",
        "scoring_func": "sigmoid",
        "norm_topk_prob": True,
        "routed_scaling_factor": 2.827,
        "aux_loss_alpha": 0.001,
        "seq_aux": True,
        "ep_size": 1,
        "num_nextn_predict_layers": 0,
        "pretraining_tp": 1,
    }
