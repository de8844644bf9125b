"""An EAGLE-3 drafter in float64 NumPy, written to be read as the specification of the maths.

Covers every setting that heads are published with; any other setting in config.json and any tensor
it does not know is refused (head_folder.py), since a reference that ignores what it does not know
agrees with nothing.

What a reader would get wrong: row i pairs the aux hidden state of position i with token i + 1, so
its logits speak of token i + 2. Embeddings are looked up by *target* ids, logits are over *draft*
ids. Which rows see which, and what is kept of them, is not here but in draft_chain.py.

Shapes: H draft hidden size, Ht target hidden size, K captures, V and Vd target and draft
vocabulary, nh/nkv/d heads, kv heads, head size. Weights are stored [out, in].
"""

from __future__ import annotations

import pathlib

import numpy as np

import head_folder
from head_folder import HeadConfig


class Head:
    """The weights and the equations. Stateless: draft_chain.Sequence keeps what must be kept."""

    def __init__(
        self,
        config: HeadConfig,
        weights: dict[str, np.ndarray],
        embedding: np.ndarray,
        target_lm_head: np.ndarray | None = None,
    ):
        self.config = config
        weights = head_folder.plain_weights(weights)
        self._unused = set(weights) - {"d2t", "t2d"}  # t2d serves training only
        self._weights = weights

        self.d2t = weights.get("d2t")  # [Vd], offsets; None: draft ids are target ids
        self.embedding = embedding  # [V, H], as stored: only looked-up rows are widened
        if "embed_tokens.weight" in weights:
            self._unused.discard("embed_tokens.weight")
            self.embedding = weights["embed_tokens.weight"]
        hidden = config.hidden_size
        self.fc = self._take("fc.weight", hidden, None) if config.use_aux else None
        self.input_norm = self._take("input_norm.weight", None) if config.norm_before_fc else None
        norms = [name for name in sorted(weights) if name.startswith("fc_norm.")]
        if config.fc_norm and not norms:
            raise ValueError("fc_norm is set but the head has no tensor fc_norm.0.weight")
        self.fc_norms = [self._take(name, None) for name in norms if config.fc_norm]
        if self.fc_norms and sum(map(len, self.fc_norms)) != self.fc.shape[1]:
            raise ValueError(f"{norms} do not cover the {self.fc.shape[1]} columns of fc.weight")
        count = 1 + max(int(n.split(".")[1]) for n in weights if n.startswith("layers."))
        qk_norm = any(name.endswith(("q_norm.weight", "k_norm.weight")) for name in weights)
        self.layers = [_Layer(self._take, config, index, qk_norm) for index in range(count)]
        self.final_norm = self._take("norm.weight", hidden)
        if "lm_head.weight" in weights:
            rows = len(self.embedding) if self.d2t is None else len(self.d2t)
            self.lm_head = self._take("lm_head.weight", rows, hidden)
        elif self.d2t is not None:
            raise ValueError("the head has no lm_head.weight; only a full vocabulary can borrow it")
        else:  # the target's, or the head's own embedding where the two are tied
            tied = "embed_tokens.weight" in weights
            self.lm_head = self.embedding if tied else target_lm_head
        if self._unused:
            raise ValueError(
                f"the head has tensors that no equation here uses: {sorted(self._unused)}; "
                "add the variant to this reference first"
            )

    def _take(self, name: str, *shape: int | None, optional: bool = False) -> np.ndarray | None:
        """The float64 tensor; None in `shape` stands for any size."""
        if optional and name not in self._weights:
            return None
        if name not in self._weights:
            raise ValueError(f"the head has no tensor {name}; its settings ask for one")
        tensor = self._weights[name]
        fits = tensor.ndim == len(shape) and all(
            size in (None, actual) for size, actual in zip(shape, tensor.shape, strict=True)
        )
        if not fits:
            raise ValueError(
                f"tensor {name} is {list(tensor.shape)}; the config implies {list(shape)}; the "
                "head and its config.json do not belong together"
            )
        self._unused.discard(name)
        return tensor.astype(np.float64)

    @classmethod
    def load(cls, folder: pathlib.Path, target_folder: pathlib.Path) -> Head:
        """Weights from `folder`; what the head has not, from the target."""
        return cls(
            HeadConfig.load(folder),
            head_folder.read_weights(folder),
            head_folder.read_target_tensor(target_folder, "embed_tokens.weight"),
            head_folder.read_target_tensor(target_folder, "lm_head.weight"),
        )

    # --- The equations, in the order in which a row meets them ---

    def fuse(self, aux: np.ndarray) -> np.ndarray:
        """aux [rows, K*Ht] -> h [rows, H]. Only rows that carry target states pass through fc."""
        aux = aux.astype(np.float64)
        if self.fc is None:  # one state behind the target's final norm, taken as it is
            return aux
        if self.input_norm is not None:
            aux = self._rms_norm(aux, self.input_norm)
        if self.fc_norms:
            captures = np.split(aux, len(self.fc_norms), axis=-1)
            normed = [self._rms_norm(*pair) for pair in zip(captures, self.fc_norms, strict=True)]
            aux = np.concatenate(normed, axis=-1)
        return aux @ self.fc.T

    def forward(
        self,
        tokens: np.ndarray,
        hidden: np.ndarray,
        positions: np.ndarray,
        lengths: np.ndarray,
        attend,
    ) -> np.ndarray:
        """One pass over rows: tokens [rows] target ids, hidden [rows, H] -> z [rows, H], un-normed.

        `attend(layer, q, k, v)` -> [rows, nh, dv] decides which rows see which, and keeps k and v
        if they are to be seen later: q [rows, nh, d], k [rows, nkv, d], v [rows, nkv, dv], q and k
        already rotated. `lengths` [rows]: the tokens of the sequence at the end of this pass.
        """
        z = hidden
        for index, layer in enumerate(self.layers):
            if index == 0:
                e = self._rms_norm(self.embedding[tokens].astype(np.float64), layer.input_norm)
                m = self._rms_norm(hidden, layer.hidden_norm)
                # The embedding never enters the residual.
                residual = m if self.config.norm_before_residual else hidden
                x = np.concatenate([e, m], axis=-1)  # embedding first
            else:
                residual, x = z, self._rms_norm(z, layer.input_norm)
            project = self._latent_projections if self.config.latent else self._projections
            q, k, v = project(layer, x, positions, lengths)
            attended = attend(index, q, k, v).reshape(len(x), -1)
            y = residual + _linear(attended, layer.o_proj, layer.o_bias)
            z = y + _mlp(self._rms_norm(y, layer.post_norm), layer)
        return z

    def logits(self, z: np.ndarray) -> np.ndarray:
        """z [rows, H] -> [rows, Vd], over draft ids."""
        return self._rms_norm(z, self.final_norm) @ self.lm_head.T

    def feed(self, z: np.ndarray) -> np.ndarray:
        """What the next draft step takes as its hidden: before the final norm, or behind it."""
        return self._rms_norm(z, self.final_norm) if self.config.norm_output else z

    def target_ids(self, draft_ids: np.ndarray) -> np.ndarray:
        return draft_ids if self.d2t is None else draft_ids + self.d2t[draft_ids]

    @property
    def attention_scale(self) -> float:
        """Of the scores in front of the softmax."""
        c = self.config
        scale = c.head_size**-0.5
        if c.latent and c.rope.kind == "yarn" and c.rope.scaling.get("mscale_all_dim"):
            scale *= c.rope.magnitude(c.rope.scaling["mscale_all_dim"]) ** 2
        return scale

    # --- Their parts ---

    def _projections(self, layer, x, positions, lengths):
        c = self.config
        q = _linear(x, layer.q_proj, layer.q_bias).reshape(-1, c.num_heads, c.head_size)
        k = _linear(x, layer.k_proj, layer.k_bias).reshape(-1, c.num_kv_heads, c.head_size)
        v = _linear(x, layer.v_proj, layer.v_bias).reshape(-1, c.num_kv_heads, c.head_size)
        if layer.q_norm is not None:  # each head by itself, in front of the rotation
            q, k = self._rms_norm(q, layer.q_norm), self._rms_norm(k, layer.k_norm)
        return self._rotate(q, positions, lengths), self._rotate(k, positions, lengths), v

    def _latent_projections(self, layer, x, positions, lengths):
        """Keys and values from one narrow vector a row; all heads share a key's rotated part."""
        sizes, heads = self.config.latent, self.config.num_heads
        if layer.q_proj is not None:
            q = x @ layer.q_proj.T
        else:
            q = self._rms_norm(x @ layer.q_a_proj.T, layer.q_a_norm) @ layer.q_b_proj.T
        q_nope, q_rope = np.split(q.reshape(len(x), heads, -1), [sizes.nope], axis=-1)
        narrow, k_rope = np.split(x @ layer.kv_a_proj.T, [sizes.kv_lora], axis=-1)
        wide = self._rms_norm(narrow, layer.kv_a_norm) @ layer.kv_b_proj.T
        k_nope, v = np.split(wide.reshape(len(x), heads, -1), [sizes.nope], axis=-1)
        k_rope = self._rotate(k_rope[:, None, :], positions, lengths).repeat(heads, axis=1)
        q_rope = self._rotate(q_rope, positions, lengths)
        return (
            np.concatenate([q_nope, q_rope], axis=-1),
            np.concatenate([k_nope, k_rope], axis=-1),
            v,
        )

    def _rms_norm(self, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        mean_square = np.mean(x * x, axis=-1, keepdims=True)
        return x / np.sqrt(mean_square + self.config.rms_norm_eps) * weight

    def _rotate(self, x: np.ndarray, positions: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        return self.config.rope.rotate(x, positions, lengths)


class _Layer:
    """The float64 tensors of one decoder layer; what a variant lacks is None."""

    def __init__(self, take, config: HeadConfig, index: int, qk_norm: bool):
        c, hidden, at = config, config.hidden_size, f"layers.{index}."
        width = 2 * hidden if index == 0 else hidden
        self.hidden_norm = take(at + "hidden_norm.weight", hidden) if index == 0 else None
        self.input_norm = take(at + "input_layernorm.weight", hidden)
        attention = at + "self_attn."
        query, kv = c.num_heads * c.head_size, c.num_kv_heads * c.head_size
        values = c.num_heads * (c.latent.v if c.latent else c.head_size)
        if c.latent:
            self._take_latent(take, c, attention, width, query)
        else:
            self.q_proj = take(attention + "q_proj.weight", query, width)
            self.k_proj = take(attention + "k_proj.weight", kv, width)
            self.v_proj = take(attention + "v_proj.weight", kv, width)
        self.o_proj = take(attention + "o_proj.weight", hidden, values)
        for name, size in (("q", query), ("k", kv), ("v", kv), ("o", hidden)):
            bias = take(attention + name + "_proj.bias", size, optional=True)
            setattr(self, name + "_bias", bias)
        for name in ("q", "k"):  # all of them or none
            norm = take(attention + name + "_norm.weight", c.head_size, optional=not qk_norm)
            setattr(self, name + "_norm", norm)
        self.post_norm = take(at + "post_attention_layernorm.weight", hidden)
        self.gate_proj = take(at + "mlp.gate_proj.weight", None, hidden)
        inner = len(self.gate_proj)
        self.up_proj = take(at + "mlp.up_proj.weight", inner, hidden)
        self.down_proj = take(at + "mlp.down_proj.weight", hidden, inner)

    def _take_latent(self, take, config, attention, width, query):
        sizes, heads = config.latent, config.num_heads
        self.q_proj = take(attention + "q_proj.weight", query, width, optional=True)
        if self.q_proj is None:
            self.q_a_proj = take(attention + "q_a_proj.weight", None, width)
            self.q_a_norm = take(attention + "q_a_layernorm.weight", len(self.q_a_proj))
            self.q_b_proj = take(attention + "q_b_proj.weight", query, len(self.q_a_proj))
        narrow = sizes.kv_lora + sizes.rope
        self.kv_a_proj = take(attention + "kv_a_proj_with_mqa.weight", narrow, width)
        self.kv_a_norm = take(attention + "kv_a_layernorm.weight", sizes.kv_lora)
        wide = heads * (sizes.nope + sizes.v)
        self.kv_b_proj = take(attention + "kv_b_proj.weight", wide, sizes.kv_lora)


def _linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    return x @ weight.T if bias is None else x @ weight.T + bias


def _mlp(x: np.ndarray, layer: _Layer) -> np.ndarray:
    gate = x @ layer.gate_proj.T
    silu = gate * 0.5 * (1.0 + np.tanh(gate / 2))  # gate / (1 + exp(-gate)), without overflow
    return (silu * (x @ layer.up_proj.T)) @ layer.down_proj.T
