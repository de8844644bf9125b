"""Drafts with the drafter class of the PyPI package `speculators` (vLLM's trainer of such heads).

Traps: the class builds a network from a nested config and other tensor names (`layers.0.*`), and
its forward() is a training loss over unrolled steps. So logits are taken where they arise, from the
lm_head, and the hidden that is fed back from the only decoder layer. It counts positions from 1,
which default RoPE does not feel.
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

import tensor_file

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
)

# Needed to compute a training target only.
_MAY_MISS = {"verifier_lm_head.weight", "verifier_norm.weight"}


class SpeculatorsDrafter:
    """float32 on the CPU, eager attention."""

    def __init__(self, drafter_folder: pathlib.Path, target_folder: pathlib.Path):
        config = json.loads((drafter_folder / "config.json").read_text())
        layer = LlamaConfig(
            **{key: config[key] for key in _LAYER_KEYS},
            rope_parameters={"rope_type": "default", "rope_theta": config["rope_theta"]},
        )
        layer._attn_implementation = "eager"
        # This package names boundaries; the head's own ids say "output of layer".
        after_layer = config["eagle_config"]["eagle_aux_hidden_state_layer_ids"]
        model = Eagle3DraftModel(
            Eagle3SpeculatorConfig(
                transformer_layer_config=layer,
                draft_vocab_size=config["draft_vocab_size"],
                eagle_aux_hidden_state_layer_ids=[layer_id + 1 for layer_id in after_layer],
                norm_before_residual=False,
                speculators_config=SpeculatorsConfig(
                    algorithm="eagle3",
                    proposal_methods=[GreedyTokenProposalConfig(speculative_tokens=5)],
                    default_proposal_method="greedy",
                    verifier=VerifierConfig(
                        name_or_path=str(target_folder), architectures=["LlamaForCausalLM"]
                    ),
                ),
            )
        ).float()
        weights = load_file(drafter_folder / "model.safetensors")
        renamed = {name.replace("midlayer.", "layers.0."): w for name, w in weights.items()}
        embedding = tensor_file.read_tensor(
            target_folder / "model.safetensors", "model.embed_tokens.weight"
        )
        renamed["embed_tokens.weight"] = torch.from_numpy(embedding)
        loaded = model.load_state_dict(renamed, strict=False)
        if set(loaded.missing_keys) - _MAY_MISS or loaded.unexpected_keys:
            raise ValueError(
                f"speculators' class misses {loaded.missing_keys} and does not know "
                f"{loaded.unexpected_keys}; expected {sorted(_MAY_MISS)} alone to be missing; it "
                "cannot judge this head"
            )
        self._model = model.eval()
        self._d2t = weights["d2t"]
        self._fc = model.fc
        model.fc = torch.nn.Identity()  # draft() fuses by itself: fed-back rows must skip fc

    @torch.inference_mode()
    def draft(self, aux: np.ndarray, tokens: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """k greedy tokens after the rows: logits [k, Vd] float32 and target ids [k]."""
        hidden = self._fc(torch.from_numpy(aux).float())
        ids = torch.from_numpy(tokens).long()
        all_logits, drafted = [], []
        for _ in range(k):
            output, logits = self._pass(hidden, ids)
            draft_id = logits.argmax()
            target_id = draft_id + self._d2t[draft_id]
            all_logits.append(logits)
            drafted.append(int(target_id))
            hidden = torch.cat([hidden, output[None]])
            ids = torch.cat([ids, target_id[None]])
        return torch.stack(all_logits).numpy(), np.array(drafted)

    def _pass(self, hidden: torch.Tensor, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """One pass over all rows; the last row's layer output [H] and logits [Vd]."""
        seen = {}

        def keep(name):
            def hook(module, inputs, output):
                tensor = output[0] if isinstance(output, tuple) else output
                seen[name] = tensor.reshape(-1, tensor.shape[-1])[-1].clone()

            return hook

        hooks = [
            self._model.layers[-1].register_forward_hook(keep("output")),
            self._model.lm_head.register_forward_hook(keep("logits")),
        ]
        try:
            one_document = torch.zeros(1, len(ids), dtype=torch.long)
            self._model(hidden[None], ids[None], one_document, ttt_steps=1)
        finally:
            for hook in hooks:
                hook.remove()
        return seen["output"], seen["logits"]
