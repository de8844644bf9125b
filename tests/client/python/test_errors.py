"""What a failed call becomes, over both transports; and trailers that are no help."""

import aerie_draft
import grpc
import numpy as np
import pytest
from aerie_draft import errors
from aerie_draft._proto import draft_pb2
from conftest import make_manifest
from fake_server import Refusal

CODE = grpc.StatusCode


@pytest.mark.parametrize(
    "code, reason, expected",
    [
        (CODE.INVALID_ARGUMENT, "NON_FINITE", aerie_draft.InvalidRequest),
        (CODE.NOT_FOUND, "SESSION_UNKNOWN", aerie_draft.SessionUnknown),
        (CODE.ABORTED, "SEQ_BEHIND", aerie_draft.Overtaken),
        (CODE.RESOURCE_EXHAUSTED, "QUEUE_FULL", aerie_draft.Overloaded),
        (CODE.DEADLINE_EXCEEDED, "DEADLINE", aerie_draft.DeadlineExceeded),
        (CODE.UNAVAILABLE, "DRAINING", aerie_draft.Unavailable),
        (CODE.INTERNAL, "", aerie_draft.AerieError),
        (CODE.FAILED_PRECONDITION, "DTYPE_MISMATCH", aerie_draft.AerieError),
    ],
)
def test_every_code_has_its_exception(server, client, manifest, code, reason, expected):
    session = client.open_session(manifest)

    def refuse(request):
        raise Refusal(code, reason)

    server.before_draft = refuse
    with pytest.raises(aerie_draft.AerieError) as caught:
        session.draft(0, [3], np.zeros((1, 24), np.float32), 1)
    assert type(caught.value) is expected
    assert (caught.value.code, caught.value.reason) == (code, reason)
    assert "expected not; mend it" in caught.value.message


def test_resync_needed_tells_where_to_resend_from(server, client, manifest):
    session = client.open_session(manifest)
    session.draft(0, [1, 2], np.zeros((2, 24), np.float32), 0)
    with pytest.raises(aerie_draft.ResyncNeeded) as caught:
        session.draft(5, [3], np.zeros((1, 24), np.float32), 1)
    assert caught.value.resend_from == 2


def test_a_manifest_that_does_not_fit_tells_field_by_field_why(client):
    with pytest.raises(aerie_draft.ManifestMismatch) as caught:
        client.open_session(make_manifest(boundaries=(0, 2, 3)))
    assert caught.value.mismatches == (
        aerie_draft.FieldMismatch("captures", "[1, 2, 3]", "[0, 2, 3]"),
    )


def test_overloaded_tells_when_to_try_again(server, client, manifest):
    session = client.open_session(manifest)

    def refuse(request):
        refusal = Refusal(CODE.RESOURCE_EXHAUSTED, "QUEUE_FULL")
        refusal.detail.retry_after.nanos = 250_000_000
        raise refusal

    server.before_draft = refuse
    with pytest.raises(aerie_draft.Overloaded) as caught:
        session.draft(0, [3], np.zeros((1, 24), np.float32), 1)
    assert caught.value.retry_after == 0.25


def test_nobody_there_is_unavailable():
    with aerie_draft.DraftClient("127.0.0.1:1") as client:
        with pytest.raises(aerie_draft.Unavailable):
            client.server_info(timeout=5)


class FailedRpc(grpc.RpcError):
    def __init__(self, trailer):
        self._trailer = trailer

    def code(self):
        return CODE.UNAVAILABLE

    def details(self):
        return "the proxy's words"

    def trailing_metadata(self):
        return self._trailer


def status_bytes(*details):
    status = draft_pb2.StatusDetails(code=14)
    for detail in details:
        status.details.add().Pack(detail)
    return status.SerializeToString()


@pytest.mark.parametrize(
    "trailer, reason",
    [
        (None, ""),
        ((("other-bin", b"\x01"),), ""),
        ((("grpc-status-details-bin", b"\xff\xff\xff"),), ""),
        ((("grpc-status-details-bin", status_bytes()),), ""),
        (
            (
                (
                    "grpc-status-details-bin",
                    status_bytes(
                        draft_pb2.BuildInfo(),
                        draft_pb2.ErrorDetail(code=5, message="server's", reason="DRAINING"),
                    ),
                ),
            ),
            "DRAINING",
        ),
    ],
    ids=["none", "another", "garbage", "empty", "behind_another_detail"],
)
def test_code_and_message_are_the_rpcs_whatever_the_trailer_holds(trailer, reason):
    error = errors.error_from_rpc(FailedRpc(trailer))
    assert type(error) is aerie_draft.Unavailable
    assert (error.code, error.message, error.reason) == (
        CODE.UNAVAILABLE,
        "the proxy's words",
        reason,
    )


def test_a_code_of_tomorrow_is_still_an_error():
    error = errors.error_from_detail(draft_pb2.ErrorDetail(code=99, message="new"))
    assert (type(error), error.code) == (aerie_draft.AerieError, CODE.UNKNOWN)
