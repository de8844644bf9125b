"""A Hugging Face causal model as a target: forwards over its KV cache that also give captures.

A draft tree is verified in one forward: a mask lets each node see the committed positions and its
own ancestors, and the position ids are those that the nodes would have on their paths.

Hidden states come from output_hidden_states=True, whose index b is boundary b for every b below the
number of layers. The last index is taken after the final norm, so boundary num_layers itself cannot
be had this way (`wiring.hidden_states_index` refuses it).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence

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

    def forward(
        self, tokens: list[int], outputs: int
    ) -> tuple[torch.Tensor, np.ndarray | None]:
        """Runs `tokens` behind what the cache holds.

        Returns the logits of the last `outputs` positions, [outputs, vocab], and the aux hidden
        states of all positions, [len(tokens), width] float32, or None without captures.
        """
        return self._run(tokens, outputs)

    def forward_tree(
        self, newest: int, tokens: Sequence[int], parents: Sequence[int]
    ) -> tuple[torch.Tensor, np.ndarray | None]:
        """Runs the newest token and a draft tree below it, each node seeing its ancestors alone.

        Node 0 is the newest token and node i is tokens[i - 1] under node parents[i - 1] < i.
        Returns the logits of all nodes, [nodes, vocab], and their aux hidden states. What the cache
        holds then is of use only after keep_path().
        """
        nodes = len(tokens) + 1
        if list(parents) == list(range(nodes - 1)):
            return self._run([newest, *tokens], nodes)
        sees = torch.eye(nodes, dtype=torch.bool)
        depths = [0] * nodes
        for node, parent in enumerate(parents, 1):
            sees[node] |= sees[parent]
            depths[node] = depths[parent] + 1
        before = self.length
        dtype = self._model.dtype
        mask = torch.zeros((1, 1, nodes, before + nodes), dtype=dtype, device=self._model.device)
        mask[0, 0, :, before:].masked_fill_(
            ~sees.to(self._model.device), torch.finfo(dtype).min
        )
        return self._run(
            [newest, *tokens],
            nodes,
            attention_mask=mask,
            position_ids=torch.tensor([[before + d for d in depths]], device=self._model.device),
        )

    @torch.inference_mode()
    def _run(self, tokens, outputs, **how) -> tuple[torch.Tensor, np.ndarray | None]:
        expected = self.length + len(tokens)
        if self._takes_logits_to_keep:
            how["logits_to_keep"] = outputs
        output = self._model(
            input_ids=torch.tensor([tokens], device=self._model.device),
            past_key_values=self._cache,
            use_cache=True,
            output_hidden_states=bool(self._indices),
            **how,
        )
        if self.length != expected:
            # A recurrent state, for one, has no past to go back to after a rejection.
            raise ValueError(
                f"the KV cache of {type(self._model).__name__} holds {self.length} positions after "
                f"{expected} tokens; expected one a token, so that rejected tokens can be "
                "forgotten; this kind of target cannot be drafted for here"
            )
        logits = output.logits[0, -outputs:]
        if not self._indices:
            return logits, None
        rows = torch.cat([output.hidden_states[i][0] for i in self._indices], dim=-1)
        return logits, rows.float().cpu().numpy()

    def keep(self, length: int) -> None:
        """Forgets all positions from `length` on, as if they had never been run."""
        if self.length > length:
            self._cache.crop(length)

    @torch.inference_mode()
    def keep_path(self, length: int, path: Sequence[int]) -> None:
        """After forward_tree() at `length` positions: keeps node 0 and those of `path`, in order.

        `path` leads down from a child of node 0; all other nodes are forgotten.
        """
        places = [length + node for node in path]
        first = length + 1
        if places != list(range(first, first + len(places))):
            for layer in self._cache.layers:
                for held in (layer.keys, layer.values):
                    held[:, :, first : first + len(places)] = held[:, :, places]
        self.keep(first + len(places))
