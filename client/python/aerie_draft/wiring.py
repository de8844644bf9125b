"""Where hidden states are taken, and what the layer ids of other programs mean.

A *boundary* is a place between the target's decoder layers: boundary 0 is the embedding output,
boundary b the output of layer b-1, which is also the input of layer b. Checkpoints and engines name
one place by either layer, so an id of 2 may mean boundary 2 or 3, and nothing in the number tells
which. Hence no function here has a default convention.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Sequence


class LayerIdConvention(enum.Enum):
    """What a layer id names. There is no default: state it."""

    INPUT_OF_LAYER = "input of layer"  # id i is boundary i
    OUTPUT_OF_LAYER = "output of layer"  # id i is boundary i + 1


class CaptureKind(enum.Enum):
    """What kind of place a capture is taken at; the value is the number in the contract."""

    BOUNDARY = 1  # the residual stream, residual added, no norm applied
    FINAL_NORM = 2  # the output of the target's final norm


@dataclasses.dataclass(frozen=True)
class Capture:
    """One place where the target's hidden state is taken."""

    kind: CaptureKind
    boundary: int = 0  # 0 .. num_layers; only with BOUNDARY

    def __str__(self) -> str:
        return "final norm" if self.kind is CaptureKind.FINAL_NORM else f"boundary {self.boundary}"


FINAL_NORM = Capture(CaptureKind.FINAL_NORM)


def captures_at(boundaries: Iterable[int]) -> tuple[Capture, ...]:
    """Captures at these boundaries, in this order."""
    return tuple(Capture(CaptureKind.BOUNDARY, int(b)) for b in boundaries)


def boundaries_from_layer_ids(
    ids: Sequence[int], convention: LayerIdConvention, num_layers: int
) -> tuple[int, ...]:
    """The boundaries that `ids` name, in the order of `ids`.

    ValueError if `ids` is empty, repeats an id, or leaves the target's `num_layers` layers.
    """
    if not isinstance(convention, LayerIdConvention):
        raise TypeError(
            f"the layer-id convention is {convention!r}; expected a LayerIdConvention; say whether "
            "an id names the input or the output of its layer"
        )
    if not ids:
        raise ValueError(
            "no layer ids; expected at least one; give the ids that the head's file lists"
        )
    if len(set(ids)) != len(ids):
        raise ValueError(
            f"layer ids {list(ids)} repeat an id; expected distinct ones; correct the list"
        )
    shift = 1 if convention is LayerIdConvention.OUTPUT_OF_LAYER else 0
    highest = num_layers - shift
    for layer_id in ids:
        if not 0 <= layer_id <= highest:
            raise ValueError(
                f"layer id {layer_id} as the {convention.value} leaves a target of {num_layers} "
                f"layers; expected 0 .. {highest}; check the convention and the target"
            )
    return tuple(layer_id + shift for layer_id in ids)


# How engines and trainers number layers, where the number alone decides. SGLang is not in the
# table, since it depends on the target's class: sglang_convention(). Neither is a trainer whose
# files exist in both conventions (TorchSpec): a table entry would be a guess.
ENGINE_CONVENTIONS = {
    "angelslim": LayerIdConvention.OUTPUT_OF_LAYER,
    "huggingface": LayerIdConvention.INPUT_OF_LAYER,  # index of hidden_states; see below
    "llama.cpp": LayerIdConvention.INPUT_OF_LAYER,
    "modelopt": LayerIdConvention.OUTPUT_OF_LAYER,
    "specforge": LayerIdConvention.OUTPUT_OF_LAYER,
    "speculators": LayerIdConvention.INPUT_OF_LAYER,
    "tensorrt-llm": LayerIdConvention.OUTPUT_OF_LAYER,
    "vllm": LayerIdConvention.INPUT_OF_LAYER,
}


def engine_convention(engine: str) -> LayerIdConvention:
    """The convention of an engine or trainer. ValueError for one that has no single convention."""
    try:
        return ENGINE_CONVENTIONS[engine]
    except KeyError:
        raise ValueError(
            f"engine {engine!r} has no single layer-id convention known here; expected one of "
            f"{', '.join(sorted(ENGINE_CONVENTIONS))}; pass a LayerIdConvention that you verified"
        ) from None


def sglang_convention(model_type: str, ids: Sequence[int], num_layers: int) -> LayerIdConvention:
    """How SGLang 0.5.23 reads explicit ids for a target of this `model_type`.

    It adds one for most targets; for three of them it looks at the ids first, so one file can be
    wired two ways under two versions of it.
    """
    if model_type in ("deepseek_v2", "deepseek_v3", "kimi_k2", "kimi_k25", "glm4_moe_lite"):
        as_output = bool(ids) and ids[0] == 1
    elif model_type == "gpt_oss":
        as_output = not ids or max(ids) != num_layers
    else:
        as_output = True
    return LayerIdConvention.OUTPUT_OF_LAYER if as_output else LayerIdConvention.INPUT_OF_LAYER


def hidden_states_index(capture: Capture, num_layers: int) -> int:
    """The index into `hidden_states` of a Hugging Face model run with output_hidden_states=True.

    Such a model returns num_layers + 1 tensors. Index b is boundary b for b < num_layers, but the
    last one is taken *after* the final norm: boundary num_layers is nowhere among them.
    """
    if capture.kind is CaptureKind.FINAL_NORM:
        return num_layers
    if capture.boundary == num_layers:
        raise ValueError(
            f"the drafter wants boundary {num_layers} of a target of {num_layers} layers, before "
            f"the final norm; output_hidden_states gives that place only after the norm; use a "
            f"drafter with a lower boundary or with the final norm, or capture by a "
            "hook on the last layer"
        )
    if not 0 <= capture.boundary < num_layers:
        raise ValueError(
            f"{capture} leaves a target of {num_layers} layers; expected 0 .. {num_layers}; check "
            "that the drafter belongs to this target"
        )
    return capture.boundary
