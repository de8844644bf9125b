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

# Describe the file, not the network; the class builds what it is.
_NOT_FOR_THE_CLASS = {"architectures", "torch_dtype"}


class SpecForgeDrafter:
    """float32 on the CPU, attention by torch's own scaled_dot_product_attention."""

    def __init__(self, drafter_folder: pathlib.Path, target_folder: pathlib.Path):
        config = json.loads((drafter_folder / "config.json").read_text())
        kept = {key: value for key, value in config.items() if key not in _NOT_FOR_THE_CLASS}
        model = LlamaForCausalLMEagle3(LlamaConfig(**kept), attention_backend="sdpa").float()
        loaded = model.load_state_dict(
            load_file(drafter_folder / "model.safetensors"), strict=False
        )
        if loaded.missing_keys != ["embed_tokens.weight"] or loaded.unexpected_keys:
            raise ValueError(
                f"specforge's class misses {loaded.missing_keys} and does not know "
                f"{loaded.unexpected_keys}; expected the embedding alone to be missing; it cannot "
                "judge this head"
            )
        with torch.no_grad():  # the class copies into a parameter
            model.load_embedding(str(target_folder), "model.embed_tokens.weight")
        self._model = model.eval()

    @torch.compiler.set_stance("force_eager")
    @torch.inference_mode()
    def draft(self, aux: np.ndarray, tokens: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """k greedy tokens after the rows: logits [k, Vd] float32 and target ids [k]."""
        model = self._model
        hidden = model.project_hidden_states(torch.from_numpy(aux).float()[None])
        ids = torch.from_numpy(tokens).long()[None]
        all_logits, drafted = [], []
        for _ in range(k):
            rows = hidden.shape[1]
            mask = prepare_decoder_attention_mask(
                torch.ones(1, rows, dtype=torch.bool), (1, rows), hidden, 0
            )
            embedded = model.embed_input_ids(ids)
            output = model.backbone(embedded, hidden, None, mask, torch.arange(rows)[None])
            logits = model.compute_logits(output[:, -1])[0]
            draft_id = logits.argmax()
            target_id = draft_id + model.d2t[draft_id]
            all_logits.append(logits)
            drafted.append(int(target_id))
            hidden = torch.cat([hidden, output[:, -1:]], dim=1)
            ids = torch.cat([ids, target_id[None, None]], dim=1)
        return torch.stack(all_logits).numpy(), np.array(drafted)
