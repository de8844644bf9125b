"""The tensors of a random head, under plain names (`layers.0.self_attn.q_proj.weight`).

Weights are scaled so that logits reach about 5 and every part of the maths moves them: a flag that
a program drops must show. They are calm enough, too, for the rounding of bfloat16 not to grow from
one draft step to the next.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

import safetensors_stream as stream
from head_plans import Fp8, HeadPlan
from safetensors_stream import Tensor


def _linear(name: str, plan: HeadPlan, seed: int, rows: int, columns: int, gain: float) -> Tensor:
    scale = gain / math.sqrt(columns)
    return stream.random_normal(name, plan.dtype, (rows, columns), scale, seed, name)


def _norm(name: str, plan: HeadPlan, seed: int, size: int, mean: float = 1.0) -> Tensor:
    normal = stream.random_normal(name, plan.dtype, (size,), 0.25, seed, name)
    return dataclasses.replace(
        normal, blocks=lambda: (block + np.float32(mean) for block in normal.blocks())
    )


def _bias(name: str, plan: HeadPlan, seed: int, size: int) -> Tensor:
    return stream.random_normal(name, plan.dtype, (size,), 0.5, seed, name)


def _attention(plan: HeadPlan, seed: int, at: str, width: int) -> list[Tensor]:
    def linear(name, rows, columns, gain):
        return _linear(f"{at}.self_attn.{name}.weight", plan, seed, rows, columns, gain)

    def norm(name, size, mean=1.0):
        return _norm(f"{at}.self_attn.{name}.weight", plan, seed, size, mean)

    latent = plan.latent
    if latent is not None:
        head = latent.nope + latent.rope
        if latent.q_lora is None:
            query = [linear("q_proj", plan.heads * head, width, 1.1)]
        else:
            query = [
                linear("q_a_proj", latent.q_lora, width, 1.0),
                norm("q_a_layernorm", latent.q_lora),
                linear("q_b_proj", plan.heads * head, latent.q_lora, 1.1),
            ]
        return [
            *query,
            linear("kv_a_proj_with_mqa", latent.kv_lora + latent.rope, width, 1.1),
            norm("kv_a_layernorm", latent.kv_lora),
            linear("kv_b_proj", plan.heads * (latent.nope + latent.v), latent.kv_lora, 1.1),
            linear("o_proj", plan.hidden, plan.heads * latent.v, 1.0),
        ]

    query_width, kv_width = plan.heads * plan.head_dim, plan.kv_heads * plan.head_dim
    tensors = [
        linear("q_proj", query_width, width, 1.1),
        linear("k_proj", kv_width, width, 1.1),
        linear("v_proj", kv_width, width, 1.2),
        linear("o_proj", plan.hidden, query_width, 1.0),
    ]
    if plan.qk_norm:
        tensors += [norm("q_norm", plan.head_dim, 1.1), norm("k_norm", plan.head_dim, 1.1)]
    biases = (
        {"q_proj": query_width, "k_proj": kv_width, "v_proj": kv_width} if plan.qkv_bias else {}
    )
    if plan.o_bias:
        biases["o_proj"] = plan.hidden
    for name, size in biases.items():
        tensors.append(_bias(f"{at}.self_attn.{name}.bias", plan, seed, size))
    return tensors


def _layer(plan: HeadPlan, seed: int, index: int) -> list[Tensor]:
    at, hidden, inner = f"layers.{index}", plan.hidden, plan.intermediate
    first = [_norm(f"{at}.hidden_norm.weight", plan, seed, hidden)] if index == 0 else []
    return first + [
        _norm(f"{at}.input_layernorm.weight", plan, seed, hidden),
        *_attention(plan, seed, at, 2 * hidden if index == 0 else hidden),
        _norm(f"{at}.post_attention_layernorm.weight", plan, seed, hidden),
        _linear(f"{at}.mlp.gate_proj.weight", plan, seed, inner, hidden, 1.0),
        _linear(f"{at}.mlp.up_proj.weight", plan, seed, inner, hidden, 1.0),
        _linear(f"{at}.mlp.down_proj.weight", plan, seed, hidden, inner, 1.0),
    ]


def draft_to_target(plan: HeadPlan, seed: int) -> np.ndarray:
    """[Vd] int64, offsets: target id = draft id + offset. Far from an identity."""
    generator = np.random.default_rng([seed, 77])
    used = np.sort(generator.choice(plan.vocab, plan.draft_vocab, replace=False))
    return used - np.arange(plan.draft_vocab)


def _vocabulary(plan: HeadPlan, seed: int) -> list[Tensor]:
    if plan.full_vocabulary:
        return []
    offsets = draft_to_target(plan, seed)
    tensors = [stream.of_array("d2t", plan.d2t_dtype, offsets)]
    if plan.t2d:
        mask = np.zeros(plan.vocab, bool)
        mask[offsets + np.arange(plan.draft_vocab)] = True
        tensors.append(stream.of_array("t2d", "BOOL", mask))
    return tensors


def embedding(plan: HeadPlan, seed: int, name: str, width: int, owner: str) -> Tensor:
    # As small as real ones: eps is felt in their norm. An output matrix at the same time: larger.
    scale = 1.3 / math.sqrt(width) if owner == "head" and not plan.own_lm_head else 0.02
    shape = (plan.vocab, width)
    return stream.random_normal(name, plan.dtype, shape, scale, seed, f"{owner} embedding")


def head_tensors(plan: HeadPlan, seed: int) -> list[Tensor]:
    hidden = plan.hidden
    tensors = [tensor for index in range(plan.layers) for tensor in _layer(plan, seed, index)]
    if plan.use_aux:
        tensors.append(_linear("fc.weight", plan, seed, hidden, plan.aux_width, 1.5))
    if plan.norm_before_fc:
        tensors.append(_norm("input_norm.weight", plan, seed, plan.aux_width))
    if plan.fc_norm:
        tensors += [
            _norm(f"fc_norm.{i}.weight", plan, seed, plan.target_hidden)
            for i in range(plan.captures)
        ]
    tensors.append(_norm("norm.weight", plan, seed, hidden))
    if plan.own_lm_head:
        tensors.append(_linear("lm_head.weight", plan, seed, plan.draft_vocab, hidden, 1.3))
    if plan.own_embedding:
        tensors.append(embedding(plan, seed, "embed_tokens.weight", hidden, "head"))
    tensors += _vocabulary(plan, seed)
    tensors = [tensor for tensor in tensors if tensor.name not in plan.unsaved]
    if plan.fp8 is not None:
        tensors = [stored for tensor in tensors for stored in _quantised(tensor, plan.fp8)]
    return tensors


def _quantised(tensor: Tensor, fp8: Fp8) -> list[Tensor]:
    """A projection as fp8 with its scales, and the ignored scale of its input; others unchanged.

    fc and lm_head stay as they are, as producers leave them.
    """
    if "_proj" not in tensor.name or not tensor.name.endswith(".weight"):
        return [tensor]
    values = np.concatenate(list(tensor.blocks())).reshape(tensor.shape)
    largest = np.abs(values).max(axis=1, keepdims=True) if fp8.per_channel else np.abs(values).max()
    scale = (largest / stream.largest_fp8(fp8.dtype)).astype(np.float32)
    stored = stream.of_array(tensor.name, fp8.dtype, values / scale)
    written = scale.reshape(-1) if fp8.flat else scale
    scales = stream.of_array(tensor.name + fp8.scale_suffix, "F32", written)
    ignored = stream.of_array(
        tensor.name.removesuffix(".weight") + ".input_scale", "F32", np.array(0.03, np.float32)
    )
    return [stored, scales] if fp8.per_channel else [stored, scales, ignored]
