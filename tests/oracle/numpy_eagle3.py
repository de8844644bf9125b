"""An EAGLE-3 drafter in float64 NumPy, written to be read as the specification of the maths.

Covers the standard single-layer head of the Llama kind in SpecForge layout (`midlayer.*`): grouped
query attention, SwiGLU, default RoPE, the residual taken from the un-normed state, the un-normed
output fed back. Any other setting in config.json and any tensor it does not know is refused, since
a reference that ignores what it does not know agrees with nothing.

What a reader would get wrong: row i pairs the aux hidden state of position i with token i + 1, so
its logits speak of token i + 2. Embeddings are looked up by *target* ids, logits are over *draft*
ids. Which rows see which, and what is kept of them, is not here but in draft_chain.py.

Shapes: H draft hidden size, Ht target hidden size, K boundaries, V and Vd target and draft
vocabulary, nh/nkv/d heads, kv heads, head size. Weights are stored [out, in].
"""

from __future__ import annotations

import dataclasses
import json
import pathlib

import numpy as np

import tensor_file


@dataclasses.dataclass(frozen=True)
class HeadConfig:
    """What the equations need to know beside the weights."""

    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_size: int
    rms_norm_eps: float
    rope_theta: float

    # Settings that change the maths and that this reference does not (yet) implement: the value
    # that it stands for. A config that says anything else is refused.
    _FIXED = {
        "hidden_act": ("silu",),
        "rope_scaling": (None,),
        "rope_parameters": (None,),
        "attention_bias": (False,),
        "mlp_bias": (False,),
        "norm_before_residual": (False,),
        "norm_before_fc": (False,),
        "fc_norm": (False,),
        "norm_output": (False,),
        "sliding_window": (None,),
        "partial_rotary_factor": (1.0,),
    }

    @classmethod
    def load(cls, folder: pathlib.Path) -> HeadConfig:
        config = json.loads((folder / "config.json").read_text())
        for key, implemented in cls._FIXED.items():
            if key in config and config[key] not in implemented:
                raise ValueError(
                    f"{folder}/config.json: {key} is {config[key]!r}; this reference implements "
                    f"{implemented[0]!r} only; add the variant to its equations first"
                )
        hidden_size, num_heads = config["hidden_size"], config["num_attention_heads"]
        return cls(
            hidden_size=hidden_size,
            num_heads=num_heads,
            num_kv_heads=config.get("num_key_value_heads", num_heads),
            head_size=config.get("head_dim") or hidden_size // num_heads,
            rms_norm_eps=config["rms_norm_eps"],
            rope_theta=config.get("rope_theta", 10000.0),
        )


class Head:
    """The weights and the equations. Stateless: draft_chain.Sequence keeps what must be kept."""

    def __init__(self, config: HeadConfig, weights: dict[str, np.ndarray], embedding: np.ndarray):
        self.config = config
        self.embedding = embedding  # [V, H], as stored: only looked-up rows are widened
        self.d2t = weights["d2t"]  # [Vd], offsets: target id = draft id + d2t[draft id]

        unused = set(weights) - {"d2t", "t2d"}  # t2d serves training only

        def take(name: str, *shape: int) -> np.ndarray:
            if weights[name].shape != shape:
                raise ValueError(
                    f"tensor {name} is {list(weights[name].shape)}; the config implies "
                    f"{list(shape)}; the head and its config.json do not belong together"
                )
            unused.discard(name)
            return weights[name].astype(np.float64)

        c, hidden = config, config.hidden_size
        self.fc = take("fc.weight", hidden, weights["fc.weight"].shape[1])
        self.input_norm = take("midlayer.input_layernorm.weight", hidden)
        self.hidden_norm = take("midlayer.hidden_norm.weight", hidden)
        self.q_proj = take(
            "midlayer.self_attn.q_proj.weight", c.num_heads * c.head_size, 2 * hidden
        )
        kv_shape = (c.num_kv_heads * c.head_size, 2 * hidden)
        self.k_proj = take("midlayer.self_attn.k_proj.weight", *kv_shape)
        self.v_proj = take("midlayer.self_attn.v_proj.weight", *kv_shape)
        self.o_proj = take("midlayer.self_attn.o_proj.weight", hidden, c.num_heads * c.head_size)
        self.post_norm = take("midlayer.post_attention_layernorm.weight", hidden)
        inner = weights["midlayer.mlp.gate_proj.weight"].shape[0]
        self.gate_proj = take("midlayer.mlp.gate_proj.weight", inner, hidden)
        self.up_proj = take("midlayer.mlp.up_proj.weight", inner, hidden)
        self.down_proj = take("midlayer.mlp.down_proj.weight", hidden, inner)
        self.final_norm = take("norm.weight", hidden)
        self.lm_head = take("lm_head.weight", len(self.d2t), hidden)
        if unused:
            raise ValueError(
                f"the head has tensors that no equation here uses: {sorted(unused)}; expected the "
                "standard single-layer set; add the variant to this reference first"
            )

    @classmethod
    def load(cls, folder: pathlib.Path, target_folder: pathlib.Path) -> Head:
        """Weights from `folder`, the embedding from the target (the head carries none)."""
        target_file = target_folder / "model.safetensors"
        embedding = tensor_file.read_tensor(target_file, "model.embed_tokens.weight")
        weights = tensor_file.read_tensors(folder / "model.safetensors")
        return cls(HeadConfig.load(folder), weights, embedding)

    # --- The equations, in the order in which a row meets them ---

    def fuse(self, aux: np.ndarray) -> np.ndarray:
        """aux [rows, K*Ht] -> h [rows, H]. Only rows that carry target states pass through fc."""
        return aux.astype(np.float64) @ self.fc.T

    def layer(
        self, tokens: np.ndarray, hidden: np.ndarray, positions: np.ndarray, attend
    ) -> np.ndarray:
        """One pass over rows: tokens [rows] target ids, hidden [rows, H] -> z [rows, H], un-normed.

        `attend(q, k, v)` -> [rows, nh, d] decides which rows see which, and keeps k and v if they
        are to be seen later: q [rows, nh, d], k and v [rows, nkv, d], q and k already rotated.
        """
        c = self.config
        e = self._rms_norm(self.embedding[tokens].astype(np.float64), self.input_norm)
        m = self._rms_norm(hidden, self.hidden_norm)
        residual = hidden  # the state before hidden_norm; the embedding never enters it
        x = np.concatenate([e, m], axis=-1)  # embedding first
        q = (x @ self.q_proj.T).reshape(-1, c.num_heads, c.head_size)
        k = (x @ self.k_proj.T).reshape(-1, c.num_kv_heads, c.head_size)
        v = (x @ self.v_proj.T).reshape(-1, c.num_kv_heads, c.head_size)
        attended = attend(self._rotate(q, positions), self._rotate(k, positions), v)
        y = residual + attended.reshape(len(tokens), -1) @ self.o_proj.T
        return y + self._mlp(self._rms_norm(y, self.post_norm))

    def logits(self, z: np.ndarray) -> np.ndarray:
        """z [rows, H] -> [rows, Vd], over draft ids."""
        return self._rms_norm(z, self.final_norm) @ self.lm_head.T

    def feed(self, z: np.ndarray) -> np.ndarray:
        """What the next draft step takes as its hidden: the output before the final norm."""
        return z

    def target_ids(self, draft_ids: np.ndarray) -> np.ndarray:
        return draft_ids + self.d2t[draft_ids]

    # --- Their parts ---

    def _rms_norm(self, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        mean_square = np.mean(x * x, axis=-1, keepdims=True)
        return x / np.sqrt(mean_square + self.config.rms_norm_eps) * weight

    def _rotate(self, x: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """RoPE on x [rows, heads, d], half-split: channel i turns together with channel i + d/2."""
        half = self.config.head_size // 2
        frequencies = self.config.rope_theta ** (-np.arange(half) / half)  # theta^(-2i/d)
        angle = positions[:, None, None] * frequencies  # [rows, 1, d/2]
        cos, sin = np.cos(angle), np.sin(angle)
        low, high = x[..., :half], x[..., half:]
        return np.concatenate([low * cos - high * sin, high * cos + low * sin], axis=-1)

    def _mlp(self, x: np.ndarray) -> np.ndarray:
        gate = x @ self.gate_proj.T
        return (gate / (1.0 + np.exp(-gate)) * (x @ self.up_proj.T)) @ self.down_proj.T
