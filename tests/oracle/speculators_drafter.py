"""Drafts with the drafter class of the PyPI package `speculators` (vLLM's trainer of such heads).

Traps: the class builds a network from a nested config and other tensor names (`layers.0.*`), and
its forward() is a training loss over unrolled steps. So logits are taken where they arise, from the
lm_head, and what is fed back from where it goes: into the first layer, one unrolled step later. It
counts positions from 1, which every rotation but a dynamic one does not feel.
"""

from __future__ import annotations

import json
import pathlib

import numpy as np
import torch
from safetensors.torch import load_file
from speculators.config import SpeculatorsConfig, VerifierConfig
from speculators.models.eagle3 import Eagle3DraftModel, Eagle3SpeculatorConfig
from speculators.proposals.greedy import GreedyTokenProposalConfig
from transformers import LlamaConfig
from transformers.models.qwen3.configuration_qwen3 import Qwen3Config

from head_folder import plain_name, read_target_tensor

_LAYER_KEYS = (
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "num_hidden_layers",
    "hidden_act",
    "rms_norm_eps",
    "max_position_embeddings",
    "vocab_size",
    "attention_bias",
    "rope_theta",
    "rope_scaling",
)

# Needed to compute a training target only.
_MAY_MISS = {"verifier_lm_head.weight", "verifier_norm.weight", "t2d"}


class SpeculatorsDrafter:
    """float32 on the CPU, eager attention."""

    def __init__(self, drafter_folder: pathlib.Path, target_folder: pathlib.Path):
        config = json.loads((drafter_folder / "config.json").read_text())
        weights = {
            plain_name(name): tensor
            for path in sorted(drafter_folder.glob("*.safetensors"))
            for name, tensor in load_file(path).items()
        }
        if "transformer_layer_config" in config:
            own = Eagle3SpeculatorConfig.from_pretrained(drafter_folder)
        else:
            own = _converted(config, weights, target_folder)
        own.transformer_layer_config._attn_implementation = "eager"
        model = Eagle3DraftModel(own).float()
        if "embed_tokens.weight" not in weights:
            embedding = read_target_tensor(target_folder, "embed_tokens.weight")
            weights["embed_tokens.weight"] = torch.from_numpy(np.asarray(embedding))
        loaded = model.load_state_dict(weights, strict=False)
        if set(loaded.missing_keys) - _MAY_MISS or loaded.unexpected_keys:
            raise ValueError(
                f"speculators' class misses {loaded.missing_keys} and does not know "
                f"{loaded.unexpected_keys}; expected {sorted(_MAY_MISS)} alone to be missing; it "
                "cannot judge this head"
            )
        self._model = model.eval()
        self._d2t = weights.get("d2t")

    @torch.inference_mode()
    def draft(
        self, aux: np.ndarray, tokens: np.ndarray, k: int, forced: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """k tokens after the rows: logits [k, Vd] float32 and target ids [k].

        Greedy, or along `forced`: target ids of the chain's tokens.
        """
        ids = torch.from_numpy(tokens).long()
        hidden = self._pass(torch.from_numpy(aux).float(), ids, "fused")
        before = self._model.fc, self._model.input_norm, self._model.fc_norm
        # Fed-back rows must skip what fuses captures; fused ones have been through it.
        self._model.fc = torch.nn.Identity()
        self._model.input_norm = self._model.fc_norm = None
        all_logits, drafted = [], []
        try:
            for step in range(k):
                output, logits = self._pass(hidden, ids, "feed"), self._seen["logits"][-1]
                draft_id = logits.argmax()
                target_id = draft_id if self._d2t is None else draft_id + self._d2t[draft_id]
                all_logits.append(logits)
                drafted.append(int(target_id))
                hidden = torch.cat([hidden, output[-1:]])
                next_id = drafted[-1] if forced is None or step + 1 == k else int(forced[step])
                ids = torch.cat([ids, torch.tensor([next_id])])
        finally:
            self._model.fc, self._model.input_norm, self._model.fc_norm = before
        return torch.stack(all_logits).numpy(), np.array(drafted)

    def _pass(self, hidden: torch.Tensor, ids: torch.Tensor, wanted: str) -> torch.Tensor:
        """One training pass of two unrolled steps over all rows; leaves what was seen in _seen."""
        model, width = self._model, self._model.hidden_size
        seen: dict[str, torch.Tensor] = {}

        def keep_first(name):
            def hook(module, inputs, output):
                seen.setdefault(name, output.reshape(-1, output.shape[-1]).clone())

            return hook

        def keep_last_input(module, inputs):
            seen["feed"] = inputs[0][0, :, width:].clone()  # behind the embedding

        hooks = [
            model.fc.register_forward_hook(keep_first("fused")),
            model.lm_head.register_forward_hook(keep_first("logits")),
            model.layers[0].register_forward_pre_hook(keep_last_input),
        ]
        try:
            one_document = torch.zeros(1, len(ids), dtype=torch.long)
            model(hidden[None], ids[None], one_document, ttt_steps=2)
        finally:
            for hook in hooks:
                hook.remove()
        self._seen = seen
        return seen[wanted]


def _converted(
    config: dict, weights: dict[str, torch.Tensor], target_folder: pathlib.Path
) -> Eagle3SpeculatorConfig:
    """Another producer's config in this package's form."""
    layer_class = Qwen3Config if "layers.0.self_attn.q_norm.weight" in weights else LlamaConfig
    layer = layer_class(
        **{key: config[key] for key in _LAYER_KEYS if config.get(key) is not None}
        # As many as there are, whatever the config says.
        | {"num_hidden_layers": sum("input_layernorm" in name for name in weights)}
    )
    captures = weights["fc.weight"].shape[1] // config["hidden_size"]
    return Eagle3SpeculatorConfig(
        transformer_layer_config=layer,
        draft_vocab_size=config["draft_vocab_size"],
        # Which boundaries they are is the target's side; here only their number counts.
        eagle_aux_hidden_state_layer_ids=list(range(captures)),
        norm_before_residual=config.get("norm_before_residual", False),
        norm_before_fc=config.get("norm_before_fc", False),
        fc_norm="fc_norm.0.weight" in weights,
        norm_output=config.get("norm_output", False),
        speculators_config=SpeculatorsConfig(
            algorithm="eagle3",
            proposal_methods=[GreedyTokenProposalConfig(speculative_tokens=5)],
            default_proposal_method="greedy",
            verifier=VerifierConfig(
                name_or_path=str(target_folder), architectures=["LlamaForCausalLM"]
            ),
        ),
    )
