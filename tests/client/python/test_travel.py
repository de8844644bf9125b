"""Rows that travel otherwise than as captures in 16 bits: in fp8, and behind fc."""

import dataclasses
import hashlib
import pathlib

import aerie_draft
import numpy as np
import pytest
from aerie_draft import DType
from aerie_draft.availability import Availability
from conftest import make_manifest

HEAD = pathlib.Path(__file__).parents[3] / "demo" / "drafter"
# Of demo/drafter/model.safetensors; tests/server/checkpoint/fc_digest_test.cc has the same.
DEMO_DIGEST = "314ef03deef7f85d004625ad60913a1b807613fbad56bac9d50f1a83f320357c"


@pytest.fixture(autouse=True)
def takes_all(server):
    server.dtypes, server.fc_digest = [1, 2, 3, 4], "abcd"


def test_fp8_rows_arrive_in_order_whatever_the_cut(client, server):
    manifest = make_manifest(dtype=DType.FLOAT8_E4M3FN)
    server.limits["max_rows_per_call"] = 3
    rows = np.random.default_rng(1).normal(size=(7, 24)).astype(np.float32)
    client.open_session(manifest).draft(0, range(7), rows, 2)
    data = b"".join(r.hidden_states.data for r in server.requests)
    assert [len(r.token_ids) for r in server.requests] == [3, 3, 1]
    assert all(r.hidden_states.dtype == 4 and not r.hidden_states.fused for r in server.requests)
    got = aerie_draft.fp8_rows_to_float(np.frombuffer(data, np.uint8).reshape(7, 28))
    # Half a step: 3 bits of fraction, or the smallest step of a row.
    assert np.all(np.abs(got - rows) <= np.abs(rows) / 16 + np.abs(rows).max(axis=1)[:, None] / 2e5)


def test_a_sequence_keeps_fp8_rows_to_send_them_again(client, server):
    manifest = make_manifest(dtype=DType.FLOAT8_E4M3FN)
    sequence = aerie_draft.DraftedSequence(client, manifest, Availability())
    rows = np.random.default_rng(2).normal(size=(5, 24)).astype(np.float32)
    sequence.commit(range(4), rows[:4])
    assert sequence.propose(2) is not None
    server.evict()
    sequence.commit([4], rows[4:])
    assert sequence.propose(2) is not None
    assert sequence.resyncs == 1
    again = server.requests[-1].hidden_states.data
    assert again == aerie_draft.float_to_fp8_rows(rows).tobytes()


@pytest.mark.parametrize(
    "manifest, field, value, message",
    [
        (make_manifest(dtype=DType.FLOAT8_E4M3FN), "dtypes", [1, 2, 3], "FLOAT8_E4M3FN rows"),
        (
            dataclasses.replace(make_manifest(), fused=aerie_draft.FusedFeatures(8, "abcd")),
            "fc_digest",
            "",
            "fused rows, which no drafter",
        ),
    ],
    ids=["fp8", "fused"],
)
def test_a_server_from_before_is_not_sent_such_rows(
    client, server, manifest, field, value, message
):
    setattr(server, field, value)
    with pytest.raises(aerie_draft.ProtocolMismatch, match=message):
        client.open_session(manifest)
    assert not server.opened


def test_fused_rows_are_announced_and_marked(client, server):
    features = aerie_draft.FusedFeatures(width=5, fc_digest="abcd")
    session = client.open_session(dataclasses.replace(make_manifest(), fused=features))
    session.draft(0, [1, 2], np.ones((2, 5), np.float32), 1)
    (opened,) = server.opened
    assert (opened.manifest.fused.width, opened.manifest.fused.fc_digest) == (5, "abcd")
    assert server.requests[-1].hidden_states.fused
    assert len(server.requests[-1].hidden_states.data) == 2 * 5 * 2


def test_the_digest_of_the_demo_head_is_the_servers():
    fc = aerie_draft.FusedFc.load(HEAD)
    assert fc.features == aerie_draft.FusedFeatures(576, DEMO_DIGEST)


def test_fc_is_the_stored_matrix_in_every_type():
    matrix = np.array([[1, 2, 3], [-1, 0.5, 4]], np.float32)
    rows = np.array([[1, 1, 1], [2, 0, -1]], np.float32)
    expected = rows @ matrix.T
    digests = set()
    for kind, stored in {
        "F32": matrix,
        "F16": matrix.astype(np.float16),
        "BF16": aerie_draft.float_to_bf16(matrix),
    }.items():
        fc = aerie_draft.FusedFc(kind, stored)
        assert np.array_equal(fc(rows), expected)
        head = f"{kind} 2 3\n".encode()
        assert fc.features.fc_digest == hashlib.sha256(head + stored.tobytes()).hexdigest()
        digests.add(fc.features.fc_digest)
    assert len(digests) == 3


def test_rows_of_another_width_are_refused_before_the_product():
    fc = aerie_draft.FusedFc("F32", np.zeros((2, 3), np.float32))
    with pytest.raises(ValueError, match=r"shape \[4, 2\]; expected \[rows, 3\]"):
        fc(np.zeros((4, 2), np.float32))


def test_a_head_without_fc_or_with_one_in_fp8_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="give its folder"):
        aerie_draft.FusedFc.load(tmp_path)
    with pytest.raises(ValueError, match="F8_E4M3"):
        aerie_draft.FusedFc("F8_E4M3", np.zeros((2, 3), np.uint8))
