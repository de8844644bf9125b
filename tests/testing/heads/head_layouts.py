"""How producers of heads spell tensors and config.json.

What a reader would get wrong: layer ids. Most producers write "output of layer i", which is
boundary i + 1; speculators and TorchSpec's Kimi export write the boundary itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import config_parts as parts
from head_plans import HeadPlan


@dataclasses.dataclass(frozen=True)
class Layout:
    layer: str  # prefix of the layer of a head that has one
    deep_layer: str  # prefix of layer {i} of a head that has several
    config: Callable[[HeadPlan], dict]
    prefix: str = ""  # in front of everything but lm_head and the maps
    deep_norm: str = "input_layernorm"  # in front of the attention of layers behind the first


def spell(plan: HeadPlan, name: str) -> str:
    """The name in the file of a tensor with this plain name."""
    layout = LAYOUTS[plan.layout]
    if plan.aux_norm_names and name.startswith("fc_norm."):
        return f"aux_norm_{('low', 'mid', 'high')[int(name.split('.')[1])]}.weight"
    if name.startswith("layers."):
        _, index, rest = name.split(".", 2)
        if index != "0":
            rest = rest.replace("input_layernorm", layout.deep_norm)
        layer = layout.layer if plan.layers == 1 else layout.deep_layer
        name = layer.format(i=index) + rest
    if name in ("lm_head.weight", "d2t", "t2d"):
        return name
    return layout.prefix + name


def head_config(plan: HeadPlan) -> dict:
    config = LAYOUTS[plan.layout].config(plan) | dict(plan.config)
    removed = {key for key, value in plan.config.items() if value is None}
    return {key: value for key, value in config.items() if key not in removed}


# --- Producers ---


def _safeailab(plan: HeadPlan) -> dict:
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "pad_token_id": 0}
    config |= parts.sizes(plan) | parts.vocabulary(plan) | parts.flags(plan)
    config["transformers_version"] = "4.28.1"
    if plan.rope is not None:
        config["rope_scaling"] = dict(plan.rope)
    return config


def _specforge(plan: HeadPlan) -> dict:
    config = {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama"}
    config |= (
        parts.sizes(plan) | {"head_dim": plan.head_dim} | parts.vocabulary(plan) | parts.flags(plan)
    )
    config |= parts.rope_scaling(plan)
    config |= {
        "attention_bias": plan.qkv_bias,
        "attention_dropout": 0.0,
        "mlp_bias": False,
        "pretraining_tp": 1,
        "pad_token_id": 0,
    }
    config["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": parts.after_layer_ids(plan)}
    if plan.latent is not None:
        del config["head_dim"]
        config |= parts.latent(plan) | {"architectures": ["Eagle3DeepseekV2ForCausalLM"]}
    return config


def _specforge_export(plan: HeadPlan) -> dict:
    """Both spellings of the rotation, saying the same."""
    config = _specforge(plan)
    parameters = parts.rope_parameters(plan)["rope_parameters"]
    return config | {"rope_parameters": parameters, "rope_scaling": dict(parameters)}


def _speculators(plan: HeadPlan) -> dict:
    layer = {"model_type": "qwen3" if plan.qk_norm else "llama"} | parts.sizes(plan)
    layer |= {
        "head_dim": plan.head_dim,
        "attention_bias": plan.qkv_bias,
        "attention_dropout": 0.0,
        "tie_word_embeddings": False,
    }
    layer |= parts.rope_parameters(plan)
    if plan.qk_norm:
        layer |= {
            "layer_types": ["full_attention"] * plan.layers,
            "max_window_layers": 28,
            "sliding_window": None,
            "use_sliding_window": False,
        }
    else:
        layer |= {"mlp_bias": False, "pretraining_tp": 1}
    proposal = {
        "accept_tolerance": 0.0,
        "proposal_type": "greedy",
        "speculative_tokens": 3,
        "verifier_accept_k": 1,
    }
    return {
        "architectures": ["Eagle3DraftModel"],
        "auto_map": {"": "config.Eagle3SpeculatorConfig"},
        "draft_vocab_size": plan.draft_vocab,
        "dtype": parts.TORCH_DTYPES[plan.dtype],
        "eagle_aux_hidden_state_layer_ids": parts.boundary_ids(plan),
        "embed_requires_grad": False,
        "fc_norm": plan.fc_norm,
        "norm_before_fc": plan.norm_before_fc,
        "norm_before_residual": plan.norm_before_residual,
        "norm_output": plan.norm_output,
        "speculators_config": {
            "algorithm": "eagle3",
            "default_proposal_method": "greedy",
            "proposal_methods": [proposal],
            "verifier": {"architectures": ["LlamaForCausalLM"], "name_or_path": "the-target"},
        },
        "speculators_model_type": "eagle3",
        "speculators_version": "0.9.0",
        "target_hidden_size": None if plan.target_hidden == plan.hidden else plan.target_hidden,
        "tie_word_embeddings": False,
        "transformer_layer_config": layer,
        "transformers_version": "5.8.1",
    }


def _modelopt(plan: HeadPlan) -> dict:
    config = _specforge(plan)
    config["eagle_config"] = {
        "eagle_aux_hidden_state_layer_ids": parts.after_layer_ids(plan) if plan.use_aux else [],
        "use_aux_hidden_state": plan.use_aux,
        "use_input_layernorm_in_first_layer": True,
        "use_last_layernorm": True,
        "use_mtp_layernorm": False,
        "next_layer_regular": True,
        "parallel_draft_step": 1,
        "parallel_draft_heads_num_layers": 1,
    }
    if plan.fp8 is not None:
        config["quantization_config"] = {
            "ignore": ["fc", "lm_head"],
            "producer": {"name": "modelopt", "version": "0.43.0"},
            "quant_algo": "FP8_PER_CHANNEL_PER_TOKEN" if plan.fp8.per_channel else "FP8",
            "quant_method": "modelopt",
        }
    return config


def _megatron(plan: HeadPlan) -> dict:
    name = "LlamaForCausalLMEagle3" + ("Deep" if plan.layers > 1 else "")
    return _modelopt(plan) | {"architectures": [name]}


def _angelslim(plan: HeadPlan) -> dict:
    config = _specforge(plan) | {"architectures": ["Eagle3LlamaForCausalLM"]}
    del config["eagle_config"]
    config["aux_hidden_states_layer_ids"] = parts.after_layer_ids(plan)
    # Copied from the target's config by the producer; the file has an output matrix of its own.
    config["tie_word_embeddings"] = True
    return config


def _torchspec(plan: HeadPlan) -> dict:
    config = _specforge(plan)
    if plan.latent is not None:
        config["eagle_config"] = {"eagle_aux_hidden_state_layer_ids": parts.boundary_ids(plan)}
    return config


LAYOUTS = {
    "safeailab": Layout("midlayer.", "midlayer.{i}.", _safeailab),
    "specforge": Layout("midlayer.", "midlayer.{i}.", _specforge),
    "specforge_export": Layout("midlayer.", "midlayer.{i}.", _specforge_export),
    "speculators": Layout("layers.0.", "layers.{i}.", _speculators),
    "modelopt": Layout("layers.0.", "layers.{i}.", _modelopt),
    "megatron": Layout("midlayer.", "midlayer.{i}.", _megatron, deep_norm="hidden_norm"),
    "angelslim": Layout("midlayer.", "midlayer.{i}.", _angelslim),
    "torchspec": Layout("layers.0.", "layers.{i}.", _torchspec),
    "sglang_deep": Layout("layers.0.", "layers.{i}.", _specforge, deep_norm="hidden_norm"),
    "nemo": Layout("layers.0.", "layers.{i}.", _specforge, prefix="model."),
    "model_midlayer": Layout("midlayer.", "midlayer.{i}.", _specforge, prefix="model."),
}
