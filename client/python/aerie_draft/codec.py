"""Values of this package <-> messages of the contract. The only module that knows both."""

from __future__ import annotations

import grpc
import numpy as np

from aerie_draft._proto import draft_pb2
from aerie_draft.dtypes import DType
from aerie_draft.errors import AerieError
from aerie_draft.options import (
    Fork,
    KChoice,
    ProposalProbs,
    Sampling,
    SessionOptions,
    TreeShape,
    VerifyCost,
)
from aerie_draft.values import (
    AcceptanceRecord,
    DrafterInfo,
    DraftTiming,
    Limits,
    Manifest,
    Proposal,
    ProposalDistribution,
    ServerInfo,
    Setting,
)
from aerie_draft.wiring import Capture, CaptureKind

_LONGEST_SECONDS = 1e9  # Past it a time limit is none; well inside what Duration can hold.


def manifest_message(manifest: Manifest) -> draft_pb2.Manifest:
    message = draft_pb2.Manifest(
        target_id=manifest.target_id,
        num_layers=manifest.num_layers,
        hidden_size=manifest.hidden_size,
        vocab_size=manifest.vocab_size,
        dtype=manifest.dtype.value,
        drafter=manifest.drafter,
    )
    if manifest.fused is not None:
        message.fused.width = manifest.fused.width
        message.fused.fc_digest = manifest.fused.fc_digest
    for capture in manifest.captures:
        message.captures.add(kind=capture.kind.value, boundary=capture.boundary)
    return message


def open_message(
    manifest: Manifest,
    options: SessionOptions,
    fork: Fork | None,
    start: int,
    client: str,
    traceparent: str = "",
) -> draft_pb2.OpenSessionRequest:
    message = draft_pb2.OpenSessionRequest(
        manifest=manifest_message(manifest), start=start, client=client, traceparent=traceparent
    )
    if fork is not None:
        message.fork.session_id = fork.session_id
        message.fork.length = fork.length
    if options.max_k:
        message.options.max_k = options.max_k
    if options.tree is not None:
        message.options.tree.depth = options.tree.depth
        message.options.tree.top_k = options.tree.top_k
        message.options.tree.total_tokens = options.tree.total_tokens
    if options.sampling is not None:
        message.options.sampling.temperature = options.sampling.temperature
        message.options.sampling.top_m = options.sampling.top_m
        message.options.sampling.seed = options.sampling.seed
        message.options.sampling.proposal_probs = options.sampling.proposal_probs.value
    message.options.extras.ancestor_mask = options.ancestor_mask
    message.options.extras.links = options.links
    message.options.adaptive_k = options.adaptive_k
    message.options.acceptance_detail = options.acceptance_detail
    return message


def options_value(message: draft_pb2.SessionOptions) -> SessionOptions:
    tree = sampling = None
    if message.HasField("tree"):
        tree = TreeShape(message.tree.depth, message.tree.top_k, message.tree.total_tokens)
    if message.HasField("sampling"):
        sampling = Sampling(
            temperature=message.sampling.temperature,
            top_m=message.sampling.top_m,
            seed=message.sampling.seed,
            proposal_probs=ProposalProbs(message.sampling.proposal_probs),
        )
    return SessionOptions(
        max_k=message.max_k,
        tree=tree,
        sampling=sampling,
        ancestor_mask=message.extras.ancestor_mask,
        links=message.extras.links,
        adaptive_k=message.adaptive_k,
        acceptance_detail=message.acceptance_detail,
    )


def draft_message(
    base_length: int,
    tokens,
    manifest: Manifest,
    k: int,
    accepted: int | None,
    verify_cost: VerifyCost | None = None,
) -> draft_pb2.DraftRequest:
    """A request without its rows, and without its sequence and number, which the session adds."""
    message = draft_pb2.DraftRequest(base_length=base_length, token_ids=tokens, k=k)
    message.hidden_states.dtype = manifest.dtype.value
    message.hidden_states.fused = manifest.fused is not None
    if accepted is not None:
        message.accepted = accepted
    if verify_cost is not None:
        nanos = round(verify_cost.seconds * 1e9)
        message.verify_cost.time.seconds, message.verify_cost.time.nanos = divmod(nanos, 10**9)
        message.verify_cost.draft_tokens = verify_cost.draft_tokens
    return message


def set_time_limit(message: draft_pb2.DraftRequest, seconds: float) -> None:
    """Tells the server when to stop: a tenth is left for the way home of a draft that is cut."""
    if 0 < seconds < _LONGEST_SECONDS:
        message.time_limit.FromNanoseconds(max(1, round(0.9e9 * seconds)))


def proposal_value(
    message: draft_pb2.DraftResponse, accepted: int | None, round_trip: float, calls: int
) -> Proposal:
    tree = message.tree
    return Proposal(
        tokens=tuple(tree.token_ids),
        parents=tuple(tree.parents),
        log_probs=tuple(tree.log_probs),
        positions=tuple(tree.positions),
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
        chosen_probs=tuple(tree.chosen_probs),
        distributions={d.node: _distribution_value(d) for d in tree.distributions},
        ancestor_mask=_mask_value(tree.ancestor_mask, len(tree.token_ids) + 1),
        first_child=tuple(tree.first_child),
        next_sibling=tuple(tree.next_sibling),
        k_choice=_k_choice_value(message),
    )


def _distribution_value(message: draft_pb2.ProposalDistribution) -> ProposalDistribution:
    return ProposalDistribution(
        node=message.node,
        tokens=np.array(message.token_ids, np.int64),
        probs=np.array(message.probs, np.float32),
    )


def _mask_value(data: bytes, nodes: int) -> np.ndarray | None:
    """Rows of bits, lowest bit of a byte first, each row padded to whole bytes."""
    if not data:
        return None
    row_bytes = (nodes + 7) // 8
    if len(data) != nodes * row_bytes:
        raise AerieError(
            grpc.StatusCode.INTERNAL,
            f"the ancestor mask of {nodes} nodes has {len(data)} bytes; expected "
            f"{nodes * row_bytes}; client and server do not fit, compare versions",
        )
    words = np.frombuffer(data, np.uint8).reshape(nodes, row_bytes)
    return np.unpackbits(words, axis=1, bitorder="little")[:, :nodes].astype(bool)


def _k_choice_value(message: draft_pb2.DraftResponse) -> KChoice | None:
    if not message.HasField("k_choice"):
        return None
    choice = message.k_choice
    return KChoice(
        k=choice.k,
        expected_tokens=choice.expected_tokens,
        draft_seconds=seconds(choice.draft_time),
        verify_seconds=seconds(choice.verify_time),
        exploring=choice.exploring,
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
        depth_histogram=tuple(message.depth_histogram),
        per_step_accepted=tuple(message.per_step_accepted),
        per_step_drafted=tuple(message.per_step_drafted),
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
            kv_memory_bytes=limits.kv_memory_bytes,
            kv_bytes_per_row=limits.kv_bytes_per_row,
            draft_window=limits.draft_window,
            draft_sink=limits.draft_sink,
            max_batch_requests=limits.max_batch_requests,
            max_rows_per_second_per_client=limits.max_rows_per_second_per_client,
            row_burst_per_client=limits.row_burst_per_client,
            max_bytes_in_flight_per_client=limits.max_bytes_in_flight_per_client,
        ),
        # A newer server may know types that this client does not.
        dtypes=tuple(d for d in DType if d.value in message.dtypes),
        settings=_settings(message.settings),
        shared_memory=draft_pb2.TRANSPORT_SHARED_MEMORY in message.transports,
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
        fc_digest=message.fc_digest,
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
