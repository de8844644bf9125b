"""Values of this package <-> messages of the contract. The only module that knows both."""

from __future__ import annotations

from aerie_draft._proto import draft_pb2
from aerie_draft.dtypes import DType
from aerie_draft.values import (
    AcceptanceRecord,
    DrafterInfo,
    DraftTiming,
    Limits,
    Manifest,
    Proposal,
    ServerInfo,
    Setting,
)
from aerie_draft.wiring import Capture, CaptureKind


def manifest_message(manifest: Manifest) -> draft_pb2.Manifest:
    message = draft_pb2.Manifest(
        target_id=manifest.target_id,
        num_layers=manifest.num_layers,
        hidden_size=manifest.hidden_size,
        vocab_size=manifest.vocab_size,
        dtype=manifest.dtype.value,
        drafter=manifest.drafter,
    )
    for capture in manifest.captures:
        message.captures.add(kind=capture.kind.value, boundary=capture.boundary)
    return message


def draft_message(
    base_length: int, tokens, rows: bytes, dtype: DType, k: int, accepted: int | None
) -> draft_pb2.DraftRequest:
    """A request without its sequence and number, which the session adds."""
    message = draft_pb2.DraftRequest(base_length=base_length, token_ids=tokens, k=k)
    message.hidden_states.dtype = dtype.value
    message.hidden_states.data = rows
    if accepted is not None:
        message.accepted = accepted
    return message


def proposal_value(
    message: draft_pb2.DraftResponse, accepted: int | None, round_trip: float, calls: int
) -> Proposal:
    return Proposal(
        tokens=tuple(message.tree.token_ids),
        parents=tuple(message.tree.parents),
        log_probs=tuple(message.tree.log_probs),
        length=message.length,
        accepted=accepted,
        no_draft_reason=_enum_name(draft_pb2.NoDraftReason, message.no_draft_reason),
        method=_enum_name(draft_pb2.ProposalMethod, message.method),
        timing=DraftTiming(
            queue=seconds(message.timing.queue),
            extend=seconds(message.timing.extend),
            step=seconds(message.timing.step),
            total=seconds(message.timing.total),
        ),
        round_trip=round_trip,
        calls=calls,
    )


def acceptance_value(message: draft_pb2.AcceptanceRecord) -> AcceptanceRecord:
    return AcceptanceRecord(
        acceptance_histogram=tuple(message.acceptance_histogram),
        accepted_draft_tokens=message.num_accepted_draft_tokens,
        draft_tokens=message.num_draft_tokens,
        spec_steps=message.num_spec_steps,
        spec_tokens=message.num_spec_tokens,
        completion_tokens=message.completion_tokens,
        unreported_drafts=message.unreported_drafts,
    )


def server_info_value(message: draft_pb2.GetServerInfoResponse) -> ServerInfo:
    limits = message.limits
    return ServerInfo(
        protocol_version=message.protocol_version,
        version=message.build.version,
        revision=message.build.revision,
        drafters=tuple(_drafter_value(d) for d in message.drafters),
        limits=Limits(
            max_k=limits.max_k,
            max_rows_per_call=limits.max_rows_per_call,
            max_message_bytes=limits.max_message_bytes,
            max_sessions=limits.max_sessions,
            max_context=limits.max_context,
            session_lease=seconds(limits.session_lease),
        ),
        # A newer server may know types that this client does not.
        dtypes=tuple(d for d in DType if d.value in message.dtypes),
        settings=_settings(message.settings),
    )


def seconds(duration) -> float:
    return duration.seconds + duration.nanos * 1e-9


def _drafter_value(message: draft_pb2.DrafterInfo) -> DrafterInfo:
    return DrafterInfo(
        name=message.name,
        version=message.version,
        captures=tuple(Capture(CaptureKind(c.kind), c.boundary) for c in message.captures),
        target_num_layers=message.target_num_layers,
        target_hidden_size=message.target_hidden_size,
        vocab_size=message.vocab_size,
        draft_vocab_size=message.draft_vocab_size,
        hidden_size=message.hidden_size,
        weight_bytes=message.weight_bytes,
        settings=_settings(message.settings),
    )


def _settings(messages) -> tuple[Setting, ...]:
    return tuple(Setting(s.name, s.value, s.source) for s in messages)


def _enum_name(enum, number: int) -> str:
    """NO_DRAFT_REASON_CONTEXT_LIMIT -> CONTEXT_LIMIT; the unspecified value -> ""."""
    if number == 0:
        return ""
    try:
        name = enum.Name(number)
    except ValueError:
        return f"UNKNOWN_{number}"
    prefix = enum.Name(0).removesuffix("UNSPECIFIED")
    return name.removeprefix(prefix)
