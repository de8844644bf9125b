"""What a random head is: its sizes, its maths and how its numbers are stored.

Nothing here is spelled as any producer spells it: names and config.json are in head_layouts.py, the
numbers in head_tensors.py, the named heads in head_variants.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Latent:
    """Sizes of multi-head latent attention. No two are equal: a swap must not pass."""

    q_lora: int | None = 24
    kv_lora: int = 20
    nope: int = 16
    rope: int = 8
    v: int = 12


@dataclasses.dataclass(frozen=True)
class Fp8:
    """Which number format the projections have and what their scales are called."""

    dtype: str = "F8_E4M3"
    per_channel: bool = False
    scale_suffix: str = "_scale"  # of "....weight"
    flat: bool = False  # scales as [1] or [rows]; else as [] or [rows, 1]


@dataclasses.dataclass(frozen=True)
class HeadPlan:
    layout: str = "specforge"

    # --- Sizes ---
    hidden: int = 64
    target_hidden: int = 64
    captures: int = 3
    layers: int = 1
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 16
    intermediate: int = 112
    vocab: int = 320
    draft_vocab: int = 96
    target_layers: int = 12
    max_positions: int = 256

    # --- Maths ---
    eps: float = 1e-5
    latent: Latent | None = None  # instead of heads with keys and values of their own
    qk_norm: bool = False
    qkv_bias: bool = False
    o_bias: bool = False
    norm_before_residual: bool = False
    norm_before_fc: bool = False
    fc_norm: bool = False
    norm_output: bool = False
    use_aux: bool = True  # False: one state behind the target's final norm, and no fc
    rope_theta: float | None = 10000.0  # None: not in config.json
    rope: Mapping | None = None  # rope_type and what belongs to it
    partial_rotary: float | None = None

    # --- What is in the file ---
    dtype: str = "BF16"
    fp8: Fp8 | None = None
    own_embedding: bool = False
    own_lm_head: bool = True
    d2t_dtype: str = "I64"  # not written with a full vocabulary
    t2d: bool = True
    aux_norm_names: bool = False  # fc_norm by its older names
    unsaved: tuple[str, ...] = ()  # plain names to leave out

    # --- What config.json says beside the layout's usual ---
    config: Mapping = dataclasses.field(default_factory=dict)  # merged last; None removes a key
    layer_ids: tuple[int, ...] | None = None  # as spelled; None: the layout's usual ones

    # --- The target ---
    target_kind: str = "llama"  # or "multimodal": a nested config and prefixed names
    target_lm_head: bool = True

    @property
    def aux_width(self) -> int:
        return self.captures * self.target_hidden if self.use_aux else self.target_hidden

    @property
    def full_vocabulary(self) -> bool:
        return self.draft_vocab == self.vocab

    @property
    def boundaries(self) -> list[int]:
        """The usual wiring; for more or fewer captures, evenly spread."""
        n = self.target_layers
        if not self.use_aux:
            return [n]
        if self.captures == 3:
            return [2, n // 2, n - 3]
        return [2 + round(i * (n - 5) / max(self.captures - 1, 1)) for i in range(self.captures)]
