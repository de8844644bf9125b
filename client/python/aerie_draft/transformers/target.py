"""A Hugging Face causal model as a target: forwards over its KV cache that also give captures.

Hidden states come from output_hidden_states=True, whose index b is boundary b for every b below the
number of layers. The last index is taken after the final norm, so boundary num_layers itself cannot
be had this way (`wiring.hidden_states_index` refuses it).
"""

from __future__ import annotations

import inspect

import numpy as np
import torch
from transformers import DynamicCache

from aerie_draft.wiring import Capture, hidden_states_index


class CachedTarget:
    """One sequence of a target. Batch 1. One thread at a time."""

    def __init__(self, model, captures: tuple[Capture, ...]):
        """`captures` may be empty: then forwards ask for no hidden states and give no rows."""
        self._model = model
        layers = model.config.get_text_config().num_hidden_layers
        self._indices = [hidden_states_index(c, layers) for c in captures]
        # Without the model's config on purpose: every layer then keeps all positions. A layer made
        # for a sliding window drops what a crop would need.
        self._cache = DynamicCache()
        self._takes_logits_to_keep = "logits_to_keep" in inspect.signature(model.forward).parameters

    @property
    def length(self) -> int:
        """Positions in the KV cache."""
        return self._cache.get_seq_length()

    @torch.inference_mode()
    def forward(self, tokens: list[int], choices: int) -> tuple[list[int], np.ndarray | None]:
        """Runs `tokens` behind what the cache holds.

        Returns the most likely next token of each of the last `choices` positions, and the aux
        hidden states of all positions, [len(tokens), width] float32, or None without captures.
        """
        expected = self.length + len(tokens)
        keep = {"logits_to_keep": choices} if self._takes_logits_to_keep else {}
        output = self._model(
            input_ids=torch.tensor([tokens], device=self._model.device),
            past_key_values=self._cache,
            use_cache=True,
            output_hidden_states=bool(self._indices),
            **keep,
        )
        if self.length != expected:
            # A recurrent state, for one, has no past to go back to after a rejection.
            raise ValueError(
                f"the KV cache of {type(self._model).__name__} holds {self.length} positions after "
                f"{expected} tokens; expected one a token, so that rejected tokens can be "
                "forgotten; this kind of target cannot be drafted for here"
            )
        picked = output.logits[0, -choices:].argmax(dim=-1).tolist()
        if not self._indices:
            return picked, None
        rows = torch.cat([output.hidden_states[i][0] for i in self._indices], dim=-1)
        return picked, rows.float().cpu().numpy()

    def keep(self, length: int) -> None:
        """Forgets all positions from `length` on, as if they had never been run."""
        if self.length > length:
            self._cache.crop(length)
