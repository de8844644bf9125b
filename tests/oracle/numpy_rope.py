"""The rotation of queries and keys in float64, for every kind that heads are published with.

What a reader would get wrong: `dynamic` depends on how long the sequence is when a row is computed.
Rows of one pass all turn by the length at its end; keys of earlier passes stay as they were. Every
other kind depends on the distance of two rows alone.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np


@dataclasses.dataclass(frozen=True)
class Rope:
    kind: str  # "default", "linear", "dynamic", "llama3" or "yarn"
    theta: float
    dim: int  # how many channels of each head turn: the first ones
    interleaved: bool = False  # channel 2i turns with 2i+1; else i with i + dim/2
    max_positions: int = 0  # "dynamic" only: the trained length
    scaling: Mapping = dataclasses.field(default_factory=dict)  # the rest of rope_scaling

    def frequencies(self, lengths: np.ndarray) -> np.ndarray:
        """lengths [rows] -> angle per position [rows or 1, dim/2]."""
        exponent = np.arange(0, self.dim, 2) / self.dim
        plain = self.theta**-exponent
        if self.kind == "default":
            return plain[None]
        factor = self.scaling["factor"]
        if self.kind == "linear":
            return plain[None] / factor
        if self.kind == "dynamic":
            # theta grows so that the slowest channel turns as far as it did at the trained length.
            length = np.maximum(lengths, self.max_positions)[:, None]
            growth = factor * length / self.max_positions - (factor - 1)
            return (self.theta * growth ** (self.dim / (self.dim - 2))) ** -exponent
        if self.kind == "llama3":
            return self._by_wavelength(plain, factor)[None]
        assert self.kind == "yarn", self.kind
        return self._by_turns(plain, factor)[None]

    def _by_wavelength(self, plain: np.ndarray, factor: float) -> np.ndarray:
        """Short waves stay, long ones are stretched by `factor`, those between are blended."""
        low, high = self.scaling["low_freq_factor"], self.scaling["high_freq_factor"]
        turns = self.scaling["original_max_position_embeddings"] * plain / (2 * math.pi)
        stay = np.clip((turns - low) / (high - low), 0.0, 1.0)
        return plain * stay + plain / factor * (1 - stay)

    def _by_turns(self, plain: np.ndarray, factor: float) -> np.ndarray:
        """Channels with many turns within the trained length stay, those with few are stretched."""
        trained = self.scaling["original_max_position_embeddings"]

        def channel(turns: float) -> float:
            return self.dim * math.log(trained / (turns * 2 * math.pi)) / (2 * math.log(self.theta))

        first = channel(self.scaling.get("beta_fast", 32))
        last = channel(self.scaling.get("beta_slow", 1))
        if self.scaling.get("truncate", True):
            first, last = math.floor(first), math.ceil(last)
        first, last = max(first, 0), min(last, self.dim - 1)
        if first == last:
            last += 0.001
        stretch = np.clip((np.arange(self.dim // 2) - first) / (last - first), 0.0, 1.0)
        return plain * (1 - stretch) + plain / factor * stretch

    @property
    def amplitude(self) -> float:
        """Of cos and sin. Only yarn has one; an explicit value, then the ratio, then the rule."""
        if self.kind != "yarn":
            return 1.0
        scaling = self.scaling
        if scaling.get("attention_factor") is not None:
            return scaling["attention_factor"]
        if scaling.get("mscale") and scaling.get("mscale_all_dim"):
            return self.magnitude(scaling["mscale"]) / self.magnitude(scaling["mscale_all_dim"])
        return self.magnitude(1.0)

    def magnitude(self, weight: float) -> float:
        factor = self.scaling["factor"]
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    def rotate(self, x: np.ndarray, positions: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """x [rows, heads, d], positions and lengths [rows] -> the same with turned channels."""
        angle = (positions[:, None] * self.frequencies(lengths))[:, None, :]  # [rows, 1, dim/2]
        cos, sin = np.cos(angle) * self.amplitude, np.sin(angle) * self.amplitude
        turned = x.copy()
        if self.interleaved:
            one, other = slice(0, self.dim, 2), slice(1, self.dim, 2)
        else:
            one, other = slice(0, self.dim // 2), slice(self.dim // 2, self.dim)
        turned[..., one] = x[..., one] * cos - x[..., other] * sin
        turned[..., other] = x[..., other] * cos + x[..., one] * sin
        return turned
