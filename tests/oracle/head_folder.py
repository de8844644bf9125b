"""What a head's folder says, in one spelling: settings and plainly named float tensors.

Written apart from the server's loader, so that two readings of one file are compared. It knows the
published spellings and refuses what it does not know: a reference that ignores a setting agrees
with nothing.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re

import numpy as np

import tensor_file
from numpy_rope import Rope

_LAYER_SPELLING = re.compile(r"(?:midlayer\.(\d+)|layers\.(\d+)|midlayer)\.(.*)")
_AUX_NORMS = {
    "aux_norm_low": "fc_norm.0",
    "aux_norm_mid": "fc_norm.1",
    "aux_norm_high": "fc_norm.2",
}


@dataclasses.dataclass(frozen=True)
class Latent:
    """Head sizes of multi-head latent attention."""

    kv_lora: int
    nope: int
    rope: int
    v: int


@dataclasses.dataclass(frozen=True)
class HeadConfig:
    """What the equations need to know beside the weights."""

    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_size: int
    rms_norm_eps: float
    rope: Rope
    latent: Latent | None = None
    norm_before_residual: bool = False
    norm_before_fc: bool = False
    fc_norm: bool = False
    norm_output: bool = False
    use_aux: bool = True

    @classmethod
    def load(cls, folder: pathlib.Path) -> HeadConfig:
        return cls.parse(json.loads((folder / "config.json").read_text()))

    @classmethod
    def parse(cls, config: dict) -> HeadConfig:
        config = _without_nulls(config)
        layer = config.get("transformer_layer_config", config)
        eagle = config.get("eagle_config", {})
        _check_fixed(layer)
        _check_fixed(config)
        if "speculators_model_type" in config and "norm_before_residual" not in config:
            raise ValueError(
                "config.json: a speculators head without norm_before_residual; the package takes "
                "false, vLLM takes true; write down the one it was trained with"
            )
        fc_norm = config.get("fc_norm", False) or config.get("use_aux_norm", False)
        if fc_norm and config.get("norm_before_fc", False):
            raise ValueError("config.json: norm_before_fc and fc_norm; expected one at most")
        hidden_size, num_heads = layer["hidden_size"], layer["num_attention_heads"]
        head_size = layer.get("head_dim", hidden_size // num_heads)
        latent = None
        if "kv_lora_rank" in layer:
            latent = Latent(
                kv_lora=layer["kv_lora_rank"],
                nope=layer["qk_nope_head_dim"],
                rope=layer["qk_rope_head_dim"],
                v=layer["v_head_dim"],
            )
        return cls(
            hidden_size=hidden_size,
            num_heads=num_heads,
            num_kv_heads=layer.get("num_key_value_heads", num_heads) if not latent else num_heads,
            head_size=latent.nope + latent.rope if latent else head_size,
            rms_norm_eps=layer["rms_norm_eps"],
            rope=_read_rope(layer, latent.rope if latent else head_size, latent is not None),
            latent=latent,
            norm_before_residual=config.get("norm_before_residual", False),
            norm_before_fc=config.get("norm_before_fc", False),
            fc_norm=fc_norm,
            norm_output=config.get("norm_output", eagle.get("return_hidden_post_norm", False)),
            use_aux=eagle.get("use_aux_hidden_state", config.get("use_aux_hidden_state", True)),
        )


# Settings that change the maths and that this reference does not implement: the values it stands
# for.
_FIXED = {
    "hidden_act": ("silu",),
    "mlp_bias": (False,),
    "bias": (False,),
    "sliding_window": (None,),
    "logit_scale": (1.0,),
    "qkv_clip": (None,),
}


def _check_fixed(config: dict) -> None:
    for key, implemented in _FIXED.items():
        if key in config and config[key] not in implemented:
            raise ValueError(
                f"config.json: {key} is {config[key]!r}; this reference implements "
                f"{implemented[0]!r} only; add the variant to its equations first"
            )


def _without_nulls(value):
    if isinstance(value, dict):
        return {key: _without_nulls(entry) for key, entry in value.items() if entry is not None}
    return value


def _read_rope(layer: dict, width: int, interleaved: bool) -> Rope:
    objects = [layer[key] for key in ("rope_scaling", "rope_parameters") if key in layer]
    scaling = {key: value for entry in objects for key, value in entry.items()}
    thetas = {entry["rope_theta"] for entry in (*objects, layer) if "rope_theta" in entry}
    if len(thetas) > 1:
        raise ValueError(f"config.json: rope_theta is {sorted(thetas)}; expected one base")
    kinds = {entry[key] for entry in objects for key in ("rope_type", "type") if key in entry}
    if len(kinds) > 1:
        raise ValueError(f"config.json: rope_type is {sorted(kinds)}; expected one kind")
    kind = kinds.pop() if kinds else "default"
    if kind == "mrope":  # of text alone all three positions are equal
        kind = "default"
    if kind not in ("default", "linear", "dynamic", "llama3", "yarn"):
        raise ValueError(
            f"config.json: rope_scaling of kind {kind!r}; this reference implements default, "
            "linear, dynamic, llama3, yarn and mrope of text; add it to numpy_rope.py first"
        )
    turning = scaling.get("partial_rotary_factor", layer.get("partial_rotary_factor", 1.0))
    return Rope(
        kind=kind,
        theta=thetas.pop() if thetas else 10000.0,
        dim=int(width * turning),
        interleaved=interleaved,
        max_positions=layer.get("max_position_embeddings", 0),
        scaling=scaling,
    )


# --- Tensors ---


def plain_name(name: str) -> str:
    """`midlayer.`, `model.layers.3.` and the like in the one spelling `layers.N.`."""
    name = name.removeprefix("model.")
    stem = name.split(".", 1)[0]
    if stem in _AUX_NORMS:
        return name.replace(stem, _AUX_NORMS[stem])
    match = _LAYER_SPELLING.fullmatch(name)
    if match is None:
        return name
    index, rest = match[1] or match[2] or "0", match[3]
    if index != "0":
        rest = rest.replace("hidden_norm", "input_layernorm")
    return f"layers.{index}.{rest}"


def plain_weights(stored: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Plain names, and fp8 values times their scales. Scales of inputs are dropped."""
    weights = {plain_name(name): array for name, array in stored.items()}
    for name in [name for name in weights if ".weight_scale" in name]:
        weight = name[: name.index("_scale")]
        scale = weights.pop(name).astype(np.float64)  # of the tensor, or of each row
        weights[weight] = weights[weight] * scale.reshape(-1, *[1] * (weights[weight].ndim - 1))
    return {name: array for name, array in weights.items() if not name.endswith(".input_scale")}


def read_weights(folder: pathlib.Path) -> dict[str, np.ndarray]:
    """As stored, of all shards."""
    return {
        name: array
        for path in sorted(folder.glob("*.safetensors"))
        for name, array in tensor_file.read_tensors(path).items()
    }


def read_target_tensor(folder: pathlib.Path, suffix: str) -> np.ndarray | None:
    """The one tensor of the target with this last part of its name."""
    for path in sorted(folder.glob("*.safetensors")):
        names = [
            n for n in tensor_file.tensor_names(path) if n == suffix or n.endswith("." + suffix)
        ]
        if names:
            return tensor_file.read_tensor(path, names[0])
    return None
