"""Drafts with decoder parts of the PyPI package `transformers`, put together as heads are trained.

Attention, its rotation, MLP and norms are that package's own classes; ours is only what makes a
head of them: the first layer's projections take twice the width, the embedding and the hidden state
side by side, and the residual is the hidden state alone. The package reads config.json's rotary
settings by itself.

What a reader would get wrong: keys and values are cached as its models do it, so a rotation that
depends on the length (`dynamic`) is not done again for old keys.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn
from transformers import DynamicCache, LlamaConfig
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek
from transformers.models.deepseek_v3.configuration_deepseek_v3 import DeepseekV3Config
from transformers.models.llama import modeling_llama as llama
from transformers.models.nemotron import modeling_nemotron as nemotron
from transformers.models.nemotron.configuration_nemotron import NemotronConfig
from transformers.models.qwen3 import modeling_qwen3 as qwen3
from transformers.models.qwen3.configuration_qwen3 import Qwen3Config

from head_folder import plain_name, read_target_tensor

# Describe the file or its producer, not the network.
_NOT_OF_A_LAYER = {
    "architectures",
    "auto_map",
    "model_type",
    "torch_dtype",
    "dtype",
    "quantization_config",
    "transformers_version",
    "eagle_config",
    "draft_vocab_size",
    "partial_rotary_factor",
}


@dataclasses.dataclass(frozen=True)
class _Family:
    name: str
    config: type
    attention: type
    rotation: type


# Nemotron: the package's half-split rotation of a part of each head.
_LLAMA = _Family("Llama", LlamaConfig, llama.LlamaAttention, llama.LlamaRotaryEmbedding)
_QWEN3 = _Family("Qwen3", Qwen3Config, qwen3.Qwen3Attention, qwen3.Qwen3RotaryEmbedding)
_NEMOTRON = _Family(
    "Nemotron", NemotronConfig, nemotron.NemotronAttention, nemotron.NemotronRotaryEmbedding
)
_DEEPSEEK = _Family(
    "DeepseekV3",
    DeepseekV3Config,
    deepseek.DeepseekV3Attention,
    deepseek.DeepseekV3RotaryEmbedding,
)


class _Layer(nn.Module):
    def __init__(self, family: _Family, config, index: int, weights: dict[str, torch.Tensor]):
        super().__init__()
        self.self_attn = family.attention(config, index)
        for name, part in list(self.self_attn.named_children()):
            # Sizes of the first layer's inputs and the presence of biases are those of the file.
            weight = weights.get(f"layers.{index}.self_attn.{name}.weight")
            if isinstance(part, nn.Linear):
                biased = f"layers.{index}.self_attn.{name}.bias" in weights
                setattr(self.self_attn, name, nn.Linear(*reversed(weight.shape), bias=biased))
        self.mlp = qwen3.Qwen3MLP(config)  # SwiGLU without biases, as in every family here
        norms = ["input_layernorm", "post_attention_layernorm"] + ["hidden_norm"] * (index == 0)
        for name in norms:
            setattr(self, name, llama.LlamaRMSNorm(config.hidden_size, config.rms_norm_eps))


class HuggingFaceDrafter:
    """float32 on the CPU, eager attention."""

    def __init__(self, head_folder: pathlib.Path, target_folder: pathlib.Path):
        config = json.loads((head_folder / "config.json").read_text())
        weights = _load(head_folder)
        layer = config.get("transformer_layer_config", config)
        family, settings = _family_of(layer, weights)
        self.family = family.name
        layer_config = family.config(**settings)
        layer_config._attn_implementation = "eager"
        eps = layer_config.rms_norm_eps

        count = 1 + max(int(n.split(".")[1]) for n in weights if n.startswith("layers."))
        self._layers = nn.ModuleList(
            [_Layer(family, layer_config, index, weights) for index in range(count)]
        )
        self._rotation = family.rotation(layer_config)
        parts = {"layers": self._layers, "norm": llama.LlamaRMSNorm(layer_config.hidden_size, eps)}
        self._norm = parts["norm"]
        self._before_fc, self._fc_norms = None, None
        if "input_norm.weight" in weights:
            self._before_fc = llama.LlamaRMSNorm(len(weights["input_norm.weight"]), eps)
            parts["input_norm"] = self._before_fc
        norms = [weights[name] for name in sorted(weights) if name.startswith("fc_norm.")]
        if norms:
            self._fc_norms = nn.ModuleList([llama.LlamaRMSNorm(len(norm), eps) for norm in norms])
            parts["fc_norm"] = self._fc_norms
        self._fc = weights.pop("fc.weight", None)
        self._d2t = weights.pop("d2t", None)
        weights.pop("t2d", None)
        self._embedding = weights.pop("embed_tokens.weight", None)
        self._lm_head = weights.pop("lm_head.weight", None)
        if self._lm_head is None and self._embedding is not None:
            self._lm_head = self._embedding
        if self._embedding is None:
            self._embedding = _of_target(target_folder, "embed_tokens.weight")
        if self._lm_head is None:
            self._lm_head = _of_target(target_folder, "lm_head.weight")
        nn.ModuleDict(parts).load_state_dict(weights, strict=True)
        self._residual_is_normed = config.get("norm_before_residual", False)
        self._feed_is_normed = config.get("norm_output", False)

    @torch.inference_mode()
    def draft(
        self, aux: np.ndarray, tokens: np.ndarray, k: int, forced: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """k tokens after the rows: logits [k, Vd] float32 and target ids [k].

        Greedy, or along `forced`: target ids of the chain's tokens.
        """
        cache = DynamicCache()
        hidden = self._fuse(torch.from_numpy(aux).float())
        ids = torch.from_numpy(np.asarray(tokens)).long()
        all_logits, drafted, position = [], [], 0
        for step in range(k):
            z = self._pass(hidden, ids, position, cache)
            position += len(ids)
            logits = self._norm(z[-1:]) @ self._lm_head.T
            draft_id = logits[0].argmax()
            target_id = draft_id if self._d2t is None else draft_id + self._d2t[draft_id]
            all_logits.append(logits[0])
            drafted.append(int(target_id))
            hidden = self._norm(z[-1:]) if self._feed_is_normed else z[-1:]
            next_id = drafted[-1] if forced is None or step + 1 == k else int(forced[step])
            ids = torch.tensor([next_id])
        return torch.stack(all_logits).numpy(), np.array(drafted)

    def _fuse(self, aux: torch.Tensor) -> torch.Tensor:
        if self._fc is None:
            return aux
        if self._before_fc is not None:
            aux = self._before_fc(aux)
        if self._fc_norms is not None:
            chunks = aux.chunk(len(self._fc_norms), dim=-1)
            aux = torch.cat([norm(c) for norm, c in zip(self._fc_norms, chunks, strict=True)], -1)
        return aux @ self._fc.T

    def _pass(self, hidden, ids, position, cache) -> torch.Tensor:
        rows = len(ids)
        positions = torch.arange(position, position + rows)[None]
        mask = torch.full((rows, position + rows), -torch.inf).triu(position + 1)[None, None]
        turned = self._rotation(hidden[None], positions)
        z = hidden[None]
        for index, layer in enumerate(self._layers):
            residual = z
            x = layer.input_layernorm(self._embedding[ids][None] if index == 0 else z)
            if index == 0:
                normed = layer.hidden_norm(z)
                residual = normed if self._residual_is_normed else z
                x = torch.cat([x, normed], dim=-1)
            attended = layer.self_attn(
                hidden_states=x,
                position_embeddings=turned,
                attention_mask=mask,
                past_key_values=cache,
            )[0]
            y = residual + attended
            z = y + layer.mlp(layer.post_attention_layernorm(y))
        return z[0]


def _family_of(layer: dict, weights: dict) -> tuple[_Family, dict]:
    settings = {
        key: value
        for key, value in layer.items()
        if key not in _NOT_OF_A_LAYER and value is not None
    }
    if "kv_lora_rank" in layer:
        return _DEEPSEEK, settings | {"q_lora_rank": layer.get("q_lora_rank")}
    if "layers.0.self_attn.q_norm.weight" in weights:
        return _QWEN3, settings
    if layer.get("partial_rotary_factor", 1.0) != 1.0:
        parameters = {
            "rope_type": "default",
            "rope_theta": layer["rope_theta"],
            "partial_rotary_factor": layer["partial_rotary_factor"],
        }
        return _NEMOTRON, settings | {"rope_parameters": parameters}
    return _LLAMA, settings


def _load(folder: pathlib.Path) -> dict[str, torch.Tensor]:
    """Plain names; fp8 by torch's own type, times its scales; everything else as float32."""
    stored = {
        plain_name(name): tensor
        for path in sorted(folder.glob("*.safetensors"))
        for name, tensor in load_file(path).items()
    }
    weights = {}
    for name, tensor in stored.items():
        if "_scale" in name:
            continue
        weights[name] = tensor.float() if tensor.is_floating_point() else tensor
        for suffix in ("_scale", "_scale_inv"):
            if name + suffix in stored:  # one number, or one for each row
                weights[name] = weights[name] * stored[name + suffix].reshape(-1, 1)
    return weights


def _of_target(folder: pathlib.Path, suffix: str) -> torch.Tensor:
    return torch.from_numpy(np.asarray(read_target_tensor(folder, suffix), np.float32))
