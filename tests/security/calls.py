"""Calls as strangers and as friends make them, and how they are refused."""

import grpc
import pytest

from server_process import PATIENCE

CODE = grpc.StatusCode
ROW_BYTES = 3 * 576 * 2


def refusal(call, *arguments, **options):
    """The code and message that a call fails with."""
    with pytest.raises(grpc.RpcError) as caught:
        call(*arguments, timeout=PATIENCE, **options)
    return caught.value.code(), caught.value.details()


def info(pb, channel, metadata=()):
    return pb.Stub(channel).GetServerInfo(pb.GetServerInfoRequest(), timeout=PATIENCE, metadata=metadata)


def manifest(pb):
    captures = [pb.Capture(kind=pb.CAPTURE_KIND_BOUNDARY, boundary=b) for b in (2, 15, 27)]
    return pb.Manifest(target_id="target", num_layers=30, hidden_size=576, vocab_size=49152, captures=captures,
                       dtype=pb.DATA_TYPE_BFLOAT16)


def health(channel):
    return channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=PATIENCE)


def open_session(pb, channel, metadata=(), **fields):
    request = pb.OpenSessionRequest(manifest=manifest(pb), **fields)
    return pb.Stub(channel).OpenSession(request, timeout=PATIENCE, metadata=metadata).session_id


def draft_request(pb, rows, session="", base=0):
    """`rows` rows, all zero, of a session; without one, of no session."""
    states = pb.HiddenStates(dtype=pb.DATA_TYPE_BFLOAT16, data=bytes(rows * ROW_BYTES))
    request = pb.DraftRequest(base_length=base, token_ids=[1] * rows, hidden_states=states, k=2)
    if session:
        request.session_id = session
    else:
        request.manifest.CopyFrom(manifest(pb))
    return request
