"""Draft chains over one sequence: which rows see which, and what is kept of them. float64 NumPy.

What a reader would get wrong: rows that carry target states stay, rows written while drafting do
not. They are guesses, and even those that the target accepts come back as rows with its own states.
So a sequence of n committed tokens has n - 1 rows, whatever was drafted on the way.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from numpy_eagle3 import Head


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


@dataclasses.dataclass(frozen=True)
class Draft:
    """k greedy draft steps from each of S slots; step 0 is draft depth 1."""

    logits: np.ndarray  # [S, k, Vd] float64, over draft ids
    draft_ids: np.ndarray  # [S, k] argmax of logits; of equal ones the lowest id
    tokens: np.ndarray  # [S, k] the same as target ids
    log_probs: np.ndarray  # [S, k] of the chosen, over the draft vocabulary at temperature 1


class Sequence:
    """The rows of one sequence and their keys and values: every one computed from target states."""

    def __init__(self, head: Head, first_position: int = 0):
        self.head = head
        self._first_position = first_position
        self._keys: list[np.ndarray] = []  # per layer [rows, nkv, d]
        self._values: list[np.ndarray] = []  # per layer [rows, nkv, dv]
        self._outputs = np.zeros((0, head.config.hidden_size))  # z of every row

    def __len__(self) -> int:
        return len(self._outputs)

    def extend(self, aux: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Appends rows: aux [rows, K*Ht] with tokens [rows], the token *after* each row's position.

        Returns the logits of the new rows, [rows, Vd]: draft step 1 from each of them.
        """
        return self.extend_fused(self.head.fuse(aux), tokens)

    def extend_fused(self, hidden: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """The same for hidden states [rows, H] that are past fc: fused rows, or fed-back ones."""
        old = len(self)
        positions = self._first_position + old + np.arange(len(tokens))
        lengths = np.full(len(tokens), positions[-1] + 1)

        def attend(layer, q, k, v):
            if layer == len(self._keys):  # the sequence's first rows
                self._keys.append(k[:0])
                self._values.append(v[:0])
            self._keys[layer] = np.concatenate([self._keys[layer], k])
            self._values[layer] = np.concatenate([self._values[layer], v])
            visible = np.arange(old + len(q)) <= old + np.arange(len(q))[:, None]
            source = (self._keys[layer][None], self._values[layer][None], visible)
            return _attention(q, [source], self.head.attention_scale)

        z = self.head.forward(tokens, hidden, positions, lengths, attend)
        self._outputs = np.concatenate([self._outputs, z])
        return self.head.logits(z)

    def feed(self) -> np.ndarray:
        """[H]: what a draft step after the last row takes as its hidden."""
        return self.head.feed(self._outputs[-1:])[0]

    def truncate(self, rows: int) -> None:
        self._keys = [keys[:rows] for keys in self._keys]
        self._values = [values[:rows] for values in self._values]
        self._outputs = self._outputs[:rows]

    def draft(
        self, k: int, slots: np.ndarray | None = None, forced: np.ndarray | None = None
    ) -> Draft:
        """k greedy tokens after each slot (default: after the last row). Leaves the cache as it is.

        A slot is a row's index; its chain sees rows 0..slot and its own guesses, nothing else, so
        many slots of one sequence are drafted in one go here. With `forced` [S, >= k-1] (target
        ids) the chain goes on with these tokens instead of its own choice: for a comparison with
        another program that chose differently between two logits that are almost equal.
        """
        head = self.head
        slots = np.array([len(self) - 1]) if slots is None else np.asarray(slots)
        committed = np.arange(len(self)) <= slots[:, None]
        guessed_keys = [[] for _ in head.layers]  # per layer and step [S, nkv, d]
        guessed_values = [[] for _ in head.layers]

        def attend(layer, q, new_keys, new_values):
            guessed_keys[layer].append(new_keys)
            guessed_values[layer].append(new_values)
            guessed = (
                np.stack(guessed_keys[layer], axis=1),
                np.stack(guessed_values[layer], axis=1),
                np.ones((len(slots), len(guessed_keys[layer])), bool),
            )
            sources = [(self._keys[layer][None], self._values[layer][None], committed), guessed]
            return _attention(q, sources, head.attention_scale)

        z = self._outputs[slots]
        logits, draft_ids = [head.logits(z)], [head.logits(z).argmax(axis=-1)]
        for step in range(1, k):
            positions = self._first_position + slots + step
            tokens = head.target_ids(draft_ids[-1]) if forced is None else forced[:, step - 1]
            z = head.forward(tokens, head.feed(z), positions, positions + 1, attend)
            logits.append(head.logits(z))
            draft_ids.append(logits[-1].argmax(axis=-1))

        all_logits, all_ids = np.stack(logits, axis=1), np.stack(draft_ids, axis=1)
        chosen = np.take_along_axis(log_softmax(all_logits), all_ids[..., None], axis=-1)[..., 0]
        return Draft(all_logits, all_ids, head.target_ids(all_ids), chosen)


def _attention(
    q: np.ndarray, sources: list[tuple[np.ndarray, np.ndarray, np.ndarray]], scale: float
) -> np.ndarray:
    """Softmax attention of q [rows, nh, d] over the union of `sources`; returns [rows, nh, dv].

    A source is (keys, values, visible): keys and values [rows or 1, n, nkv, d or dv] (1: shared by
    all rows), visible [rows, n] bool. Query head h reads kv head h // (nh / nkv).
    """
    rows, num_heads, head_size = q.shape
    num_kv_heads = sources[0][0].shape[2]
    grouped = q.reshape(rows, num_kv_heads, num_heads // num_kv_heads, head_size)

    scores = []
    for keys, _, visible in sources:
        if len(keys) == 1:
            score = np.einsum("rhgd,nhd->rhgn", grouped, keys[0], optimize=True)
        else:
            score = np.einsum("rhgd,rnhd->rhgn", grouped, keys, optimize=True)
        scores.append(np.where(visible[:, None, None, :], score * scale, -np.inf))
    weights = np.exp(log_softmax(np.concatenate(scores, axis=-1)))

    attended, start = 0.0, 0
    for keys, values, _ in sources:
        weight = weights[..., start : start + keys.shape[1]]
        start += keys.shape[1]
        if len(values) == 1:
            attended += np.einsum("rhgn,nhd->rhgd", weight, values[0], optimize=True)
        else:
            attended += np.einsum("rhgn,rnhd->rhgd", weight, values, optimize=True)
    return attended.reshape(rows, num_heads, -1)
