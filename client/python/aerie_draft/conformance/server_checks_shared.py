"""Rows in shared memory, where the server lists it to this client."""

from __future__ import annotations

import contextlib

from aerie_draft._proto import draft_pb2
from aerie_draft.conformance.lines import Line, expect_same
from aerie_draft.conformance.probe import CheckList, Code, NotSeen, Probe
from aerie_draft.shared_segment import SharedSegment, Slot

CHECKS = CheckList()
pb = draft_pb2
_ROWS = 4


@CHECKS.add("S-SHARED-MEMORY")
def shared_memory(probe: Probe) -> None:
    if pb.TRANSPORT_SHARED_MEMORY not in probe.info.transports:
        raise NotSeen("the server does not list it to this client")
    row_bytes = probe.width * probe.dtype.size
    try:
        segment = SharedSegment(4 * (_ROWS * row_bytes + 128))
    except OSError as error:
        raise NotSeen(f"no segment can be made here: {error}") from None
    with contextlib.closing(segment):
        _register_and_draft(probe, segment)


def _register_and_draft(probe: Probe, segment: SharedSegment) -> None:
    wrong = bytes([segment.key[0] ^ 1]) + segment.key[1:]
    probe.refused(
        "RegisterSharedMemory",
        pb.RegisterSharedMemoryRequest(name=segment.name, key=wrong),
        Code.INVALID_ARGUMENT,
        "a segment with another key",
        "SHARED_MEMORY_INVALID",
    )
    registered = probe.call(
        "RegisterSharedMemory",
        pb.RegisterSharedMemoryRequest(name=segment.name, key=segment.key),
    )
    segment.unlink()
    try:
        _draft(probe, segment, registered.segment_id)
    finally:
        probe.call(
            "UnregisterSharedMemory",
            pb.UnregisterSharedMemoryRequest(segment_id=registered.segment_id),
        )


def _draft(probe: Probe, segment: SharedSegment, segment_id: str) -> None:
    told = Line(probe, 91)
    shared = probe.open().session_id
    sample = told.sample
    slots = []
    for first in (0, _ROWS):
        answer = told.advance(_ROWS, probe.k)
        slots.append(segment.put(sample.rows(first, first + _ROWS)))
        tokens = sample.tokens(first, first + _ROWS)
        request = _request(probe, shared, first, tokens, segment_id, slots[-1])
        expect_same(
            answer,
            probe.call("Draft", request),
            "rows in the message and in shared memory",
            "copy the slot's rows, from 64 bytes behind its offset",
        )
    tokens = sample.tokens(2 * _ROWS, 3 * _ROWS)
    free = segment.put(sample.rows(2 * _ROWS, 3 * _ROWS))
    outside = free._replace(offset=(1 << 64) - 64)
    another = free._replace(stamp=free.stamp % (2**64 - 1) + 1)
    for what, slot, name, code, reason in (
        ("a slot outside the segment", outside, segment_id, *_BOUNDS),
        ("another stamp", another, segment_id, *_CHANGED),
        ("an unknown segment", free, "nobody's", *_UNKNOWN),
    ):
        request = _request(probe, shared, 2 * _ROWS, tokens, name, slot)
        probe.refused("Draft", request, code, what, reason)
    segment.free(free)
    request = _request(probe, shared, 2 * _ROWS, tokens, segment_id, free)
    probe.refused("Draft", request, _CHANGED[0], "a slot that is free again", _CHANGED[1])
    probe.end(shared)
    told.close()


_BOUNDS = (Code.INVALID_ARGUMENT, "SHARED_MEMORY_BOUNDS")
_CHANGED = (Code.ABORTED, "SHARED_MEMORY_CHANGED")
_UNKNOWN = (Code.FAILED_PRECONDITION, "SHARED_MEMORY_UNKNOWN")


def _request(
    probe: Probe, session: str, first: int, tokens: list[int], segment_id: str, slot: Slot
) -> draft_pb2.DraftRequest:
    request = probe.request(session, first, tokens, b"", probe.k)
    shared = request.hidden_states.shared
    shared.segment_id = segment_id
    shared.offset, shared.length, shared.stamp = slot
    return request
