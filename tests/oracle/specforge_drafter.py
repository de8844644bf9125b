"""Drafts with the drafter class of the PyPI package `specforge`, the code such heads train with.

Traps: the class' forward() returns an output that is normed already, so logits come from its own
backbone() and compute_logits(); it has no cache for chains of this shape, so every step runs over
all rows again (slow and simple, as an oracle should be); and it compiles itself for each new shape
with the machine's C++ compiler, half a minute in all, unless told to stay eager.
"""

from __future__ import annotations

import json
import pathlib

import numpy as np
import torch
from safetensors.torch import load_file
from specforge.modeling.draft.llama3_eagle import (
    LlamaForCausalLMEagle3,
    prepare_decoder_attention_mask,
)
from transformers import LlamaConfig

from head_folder import plain_name, read_target_tensor

# Describe the file, not the network; the class builds what it is.
_NOT_FOR_THE_CLASS = {"architectures", "torch_dtype", "model_type"}

# What a file may lack: the embedding is the target's, and with a full vocabulary there is no map.
_MAY_MISS = {"embed_tokens.weight", "d2t", "t2d"}


class SpecForgeDrafter:
    """float32 on the CPU, attention by torch's own scaled_dot_product_attention."""

    def __init__(self, drafter_folder: pathlib.Path, target_folder: pathlib.Path):
        config = json.loads((drafter_folder / "config.json").read_text())
        kept = {key: value for key, value in config.items() if key not in _NOT_FOR_THE_CLASS}
        model = LlamaForCausalLMEagle3(LlamaConfig(**kept), attention_backend="sdpa").float()
        weights = {
            plain_name(name).replace("layers.0.", "midlayer."): tensor
            for path in sorted(drafter_folder.glob("*.safetensors"))
            for name, tensor in load_file(path).items()
        }
        loaded = model.load_state_dict(weights, strict=False)
        if set(loaded.missing_keys) - _MAY_MISS or loaded.unexpected_keys:
            raise ValueError(
                f"specforge's class misses {loaded.missing_keys} and does not know "
                f"{loaded.unexpected_keys}; expected {sorted(_MAY_MISS)} alone to be missing; it "
                "cannot judge this head"
            )
        if "embed_tokens.weight" in loaded.missing_keys:
            # Its own load_embedding() wants one name in one file; a wrapped target has another.
            embedding = read_target_tensor(target_folder, "embed_tokens.weight")
            with torch.no_grad():
                model.embed_tokens.weight.copy_(torch.from_numpy(np.asarray(embedding)).float())
        self._model = model.eval()
        self._three_positions = "mrope_section" in (config.get("rope_scaling") or {})

    @torch.compiler.set_stance("force_eager")
    @torch.inference_mode()
    def draft(
        self, aux: np.ndarray, tokens: np.ndarray, k: int, forced: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """k tokens after the rows: logits [k, Vd] float32 and target ids [k].

        Greedy, or along `forced`: target ids of the chain's tokens.
        """
        model = self._model
        hidden = model.project_hidden_states(torch.from_numpy(aux).float()[None])
        ids = torch.from_numpy(tokens).long()[None]
        all_logits, drafted = [], []
        for step in range(k):
            rows = hidden.shape[1]
            mask = prepare_decoder_attention_mask(
                torch.ones(1, rows, dtype=torch.bool), (1, rows), hidden, 0
            )
            embedded = model.embed_input_ids(ids)
            positions = torch.arange(rows)[None]
            if self._three_positions:  # of text, all alike
                positions = positions.expand(3, 1, rows)
            output = model.backbone(embedded, hidden, None, mask, positions)
            logits = model.compute_logits(output[:, -1])[0]
            draft_id = logits.argmax()
            target_id = draft_id + model.d2t[draft_id]
            all_logits.append(logits)
            drafted.append(int(target_id))
            hidden = torch.cat([hidden, output[:, -1:]], dim=1)
            next_id = drafted[-1] if forced is None or step + 1 == k else int(forced[step])
            ids = torch.cat([ids, torch.tensor([[next_id]])], dim=1)
        return torch.stack(all_logits).numpy(), np.array(drafted)
