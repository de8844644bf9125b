"""Whether this engine and that server fit, found out before a weight is loaded.

Everything that does not fit is said at once, each with what was seen, what was expected and what to
do. What this cannot find is a head that was trained on other places than its own file says:
aerie-verify does that.
"""

from __future__ import annotations

import dataclasses

from aerie_draft.client import PROTOCOL_VERSION
from aerie_draft.dtypes import DType
from aerie_draft.values import DrafterInfo, Manifest, ServerInfo
from aerie_draft.vllm.settings import KEY, Settings
from aerie_draft.wiring import Capture, CaptureKind, captures_at

_DTYPE_NAMES = {"float32": DType.FLOAT32, "float16": DType.FLOAT16, "bfloat16": DType.BFLOAT16}


class AdmissionError(ValueError):
    """Engine and server do not fit, or the engine runs in a way that cannot be drafted for."""


@dataclasses.dataclass(frozen=True)
class EngineFacts:
    """What matters here of a vLLM configuration."""

    model: str
    num_layers: int
    hidden_size: int
    vocab_size: int
    max_model_len: int
    dtype: str  # e.g. "bfloat16"
    k: int  # num_speculative_tokens
    method: str  # of the speculative_config
    async_scheduling: bool = False
    v2_model_runner: bool = False
    pipeline_parallel: int = 1
    context_parallel: int = 1  # of prefill times of decode
    micro_batches: bool = False
    prompt_embeds: bool = False

    @staticmethod
    def of(vllm_config) -> EngineFacts:
        model, parallel = vllm_config.model_config, vllm_config.parallel_config
        speculative = vllm_config.speculative_config
        return EngineFacts(
            model=str(model.model),
            num_layers=int(model.hf_text_config.num_hidden_layers),
            hidden_size=int(model.get_hidden_size()),
            vocab_size=int(model.get_vocab_size()),
            max_model_len=int(model.max_model_len),
            dtype=str(model.dtype).removeprefix("torch."),
            k=int(speculative.num_speculative_tokens) if speculative else 0,
            method=str(speculative.method) if speculative else "",
            async_scheduling=bool(vllm_config.scheduler_config.async_scheduling),
            v2_model_runner=bool(vllm_config.use_v2_model_runner),
            pipeline_parallel=parallel.pipeline_parallel_size,
            context_parallel=parallel.prefill_context_parallel_size
            * parallel.decode_context_parallel_size,
            micro_batches=bool(parallel.use_ubatching),
            prompt_embeds=bool(model.enable_prompt_embeds),
        )


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is captured and what is declared about it."""

    manifest: Manifest
    k: int
    max_model_len: int
    # What the engine is told to capture. It gives the states in ascending order, whatever it is
    # told, so `sources` says for each capture of the manifest which of them it is; None: the
    # engine's final hidden states, after the norm.
    aux_boundaries: tuple[int, ...]
    sources: tuple[int | None, ...]


def check_engine(facts: EngineFacts) -> None:
    """AdmissionError if the engine runs in a way that cannot be drafted for."""
    refusals = [
        (
            facts.method != "custom_class",
            f"the speculative method is {facts.method or 'none'!r}; expected 'custom_class'; add "
            '--speculative-config \'{"method": "custom_class", "model": '
            '"aerie_draft.vllm.Proposer", "num_speculative_tokens": 4}\'',
        ),
        (
            facts.async_scheduling,
            "async scheduling is on; expected it off, since the next round is then scheduled "
            "before the draft for it is there; start with --no-async-scheduling",
        ),
        (
            facts.v2_model_runner,
            "vLLM runs its V2 model runner; expected the V1 runner, the only one with a place for "
            "an external drafter; unset VLLM_USE_V2_MODEL_RUNNER or set it to 0",
        ),
        (
            facts.pipeline_parallel > 1,
            f"pipeline_parallel_size is {facts.pipeline_parallel}; expected 1, since the captured "
            "states of early stages do not reach the last one in every model; use tensor "
            "parallelism",
        ),
        (
            facts.context_parallel > 1,
            f"context parallelism of {facts.context_parallel} is on; expected none, since each "
            "rank then sees a part of the rows; start without it",
        ),
        (
            facts.micro_batches,
            "dual batch overlap is on; expected it off, since captured states then come in pieces; "
            "start without --enable-dbo",
        ),
        (
            facts.prompt_embeds,
            "prompt embeddings are enabled; expected token ids for every position, since a draft "
            "is made from them; start without --enable-prompt-embeds",
        ),
    ]
    _refuse([text for holds, text in refusals if holds])


def plan_for(settings: Settings, facts: EngineFacts, info: ServerInfo | None) -> Plan:
    """What to capture. `info` None: the server is not there, and `settings` must say it alone.

    AdmissionError if the server does not fit: all that differs, not only the first.
    """
    drafter = None
    if info is not None:
        check_version(settings, info)
        drafter = _drafter(settings, info)
        _refuse(mismatches(settings, facts, info, drafter))
    captures = captures_at(settings.boundaries) if drafter is None else drafter.captures
    boundaries = tuple(sorted(c.boundary for c in captures if c.kind is CaptureKind.BOUNDARY))
    manifest = Manifest(
        target_id=facts.model[-256:],
        num_layers=facts.num_layers,
        hidden_size=facts.hidden_size,
        vocab_size=facts.vocab_size,
        captures=tuple(captures),
        dtype=settings.dtype or _DTYPE_NAMES.get(facts.dtype, DType.BFLOAT16),
        drafter=settings.drafter,
    )
    return Plan(
        manifest=manifest,
        k=facts.k,
        max_model_len=facts.max_model_len,
        aux_boundaries=boundaries,
        sources=tuple(_source(c, boundaries) for c in captures),
    )


def check_version(settings: Settings, info: ServerInfo) -> None:
    if info.protocol_version < PROTOCOL_VERSION:
        raise AdmissionError(
            f"the draft server at {settings.address} speaks protocol {info.protocol_version}; "
            f"expected {PROTOCOL_VERSION} or later; update the server"
        )


def mismatches(
    settings: Settings, facts: EngineFacts, info: ServerInfo, drafter: DrafterInfo
) -> list[str]:
    """All that differs between engine and server, as messages."""
    found = []
    where = f"drafter {drafter.name!r} at {settings.address}"
    for name, ours, theirs in (
        ("decoder layers", facts.num_layers, drafter.target_num_layers),
        ("hidden size", facts.hidden_size, drafter.target_hidden_size),
        ("vocabulary", facts.vocab_size, drafter.vocab_size),
    ):
        if ours != theirs:
            found.append(
                f"{facts.model} has {name} {ours}; expected {theirs}, for which the {where} was "
                "trained; serve the model of that drafter, or start the server with another drafter"
            )
    wanted = tuple(c.boundary for c in drafter.captures if c.kind is CaptureKind.BOUNDARY)
    if settings.boundaries is not None and captures_at(settings.boundaries) != drafter.captures:
        found.append(
            f"{KEY}.boundaries is {list(settings.boundaries)}; expected "
            f"[{', '.join(_name(c) for c in drafter.captures)}], on which the {where} was trained; "
            + _boundary_remedy(settings.boundaries, wanted)
        )
    beyond = [b for b in wanted if b > facts.num_layers]
    if beyond:
        found.append(
            f"the {where} wants boundaries {beyond}; expected 0 .. {facts.num_layers} of "
            f"{facts.model}; serve the model of that drafter"
        )
    if info.limits.max_k and facts.k > info.limits.max_k:
        found.append(
            f"num_speculative_tokens is {facts.k}; expected at most {info.limits.max_k}, the "
            f"server's --max-k; lower it, or raise the server's"
        )
    dtype = settings.dtype or _DTYPE_NAMES.get(facts.dtype)
    if dtype is None or (info.dtypes and dtype not in info.dtypes):
        found.append(
            f"hidden states are {facts.dtype if dtype is None else dtype.name.lower()}; expected "
            f"one of {', '.join(d.name.lower() for d in info.dtypes)}; set {KEY}.dtype"
        )
    return found


def _boundary_remedy(given: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    if tuple(b + 1 for b in given) == wanted:
        # The head's own config, handed on as it is: its ids name the layer before the place.
        return (
            "these are ids of the layers whose outputs those are: add 1 to each, or leave the "
            "setting out"
        )
    return "leave the setting out, or start the server with the drafter that you mean"


def _drafter(settings: Settings, info: ServerInfo) -> DrafterInfo:
    try:
        return info.drafter(settings.drafter)
    except ValueError as error:
        raise AdmissionError(f"{KEY}.drafter is {settings.drafter!r}: {error}") from None


def _source(capture: Capture, boundaries: tuple[int, ...]) -> int | None:
    if capture.kind is CaptureKind.FINAL_NORM:
        return None
    return boundaries.index(capture.boundary)


def _name(capture: Capture) -> str:
    if capture.kind is CaptureKind.FINAL_NORM:
        return "final norm"
    return str(capture.boundary)


def _refuse(messages: list[str]) -> None:
    if messages:
        raise AdmissionError("vLLM cannot draft through Aerie: " + "; and: ".join(messages))
