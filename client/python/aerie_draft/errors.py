"""What a failed call becomes: one exception type for each thing a worker can do about it.

Only Overloaded, Unavailable and DeadlineExceeded are cured by waiting; ResyncNeeded and
SessionUnknown by sending rows again; the others by changing the program or its configuration.
"""

from __future__ import annotations

import dataclasses

import grpc

from aerie_draft._proto import draft_pb2

_DETAILS_TRAILER = "grpc-status-details-bin"


@dataclasses.dataclass(frozen=True)
class FieldMismatch:
    """A field of the manifest that does not fit the drafter."""

    field: str
    expected: str
    received: str


class AerieError(Exception):
    """A call that failed. `reason` is stable and for programs; empty when the server gave none."""

    def __init__(self, code: grpc.StatusCode, message: str, reason: str = ""):
        super().__init__(f"{code.name}{f' ({reason})' if reason else ''}: {message}")
        self.code = code
        self.message = message
        self.reason = reason


class InvalidRequest(AerieError):
    """The call contradicts itself. Sending it again fails again."""


class ManifestMismatch(AerieError):
    """What the worker captures is not what the drafter was trained on; `mismatches` says where."""

    mismatches: tuple[FieldMismatch, ...] = ()


class ResyncNeeded(AerieError):
    """The server holds fewer rows than the call built on: send again from row `resend_from`."""

    resend_from: int = 0


class SessionUnknown(AerieError):
    """No such session there any more: open a new one and send from row 0."""


class Overtaken(AerieError):
    """A newer call of this session was served first; this one changed nothing."""


class Overloaded(AerieError):
    """The server is full. Decode this round without a draft; try again in `retry_after` seconds."""

    retry_after: float | None = None


class DeadlineExceeded(AerieError):
    """No answer in time. The server may or may not have taken the rows: send from the same row."""


class Unavailable(AerieError):
    """Unreachable, loading or draining (`reason` tells them apart). Decode without drafts."""


class ProtocolMismatch(AerieError):
    """The server speaks an older contract than this client needs."""


_BY_CODE = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequest,
    grpc.StatusCode.NOT_FOUND: SessionUnknown,
    grpc.StatusCode.ABORTED: Overtaken,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Overloaded,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    # A call cut off by its own channel or stream going away.
    grpc.StatusCode.CANCELLED: Unavailable,
}
_STATUS_CODES = {status.value[0]: status for status in grpc.StatusCode}


def error_from_detail(detail: draft_pb2.ErrorDetail) -> AerieError:
    """The exception for an error that came as a message, as those of a stream do."""
    code = _STATUS_CODES.get(detail.code, grpc.StatusCode.UNKNOWN)
    if code is grpc.StatusCode.FAILED_PRECONDITION and detail.HasField("resend_from"):
        resync = ResyncNeeded(code, detail.message, detail.reason)
        resync.resend_from = detail.resend_from
        return resync
    if code is grpc.StatusCode.FAILED_PRECONDITION and detail.mismatches:
        mismatch = ManifestMismatch(code, detail.message, detail.reason)
        mismatch.mismatches = tuple(
            FieldMismatch(m.field, m.expected, m.received) for m in detail.mismatches
        )
        return mismatch
    error = _BY_CODE.get(code, AerieError)(code, detail.message, detail.reason)
    if isinstance(error, Overloaded) and detail.HasField("retry_after"):
        error.retry_after = detail.retry_after.seconds + detail.retry_after.nanos * 1e-9
    return error


def error_from_rpc(rpc_error: grpc.RpcError) -> AerieError:
    """The exception for a failed rpc, with what its trailer tells beside code and message."""
    detail = _detail_in_trailer(rpc_error.trailing_metadata() or ())
    if detail is None:
        detail = draft_pb2.ErrorDetail()
    # Code and message of the rpc itself count: a proxy on the way may have changed them.
    detail.code = rpc_error.code().value[0]
    detail.message = rpc_error.details() or detail.message
    return error_from_detail(detail)


def _detail_in_trailer(metadata) -> draft_pb2.ErrorDetail | None:
    for key, value in metadata:
        if key != _DETAILS_TRAILER:
            continue
        try:
            status = draft_pb2.StatusDetails.FromString(value)
            for packed in status.details:
                detail = draft_pb2.ErrorDetail()
                if packed.Unpack(detail):
                    return detail
        except Exception:  # The type differs between protobuf versions. Garbage is no detail.
            return None
    return None
