"""DraftClient and DraftSession against a fake server, over both transports."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import aerie_draft
import grpc
import numpy as np
import pytest
from aerie_draft import DType, SessionOptions
from aerie_draft.dtypes import PLAIN_DTYPES
from conftest import make_manifest
from fake_server import FakeServer, Refusal


def rows(count, start=0):
    """[count, 24], every element another: a swapped row or column cannot pass. Exact in bf16."""
    return (np.arange(count * 24).reshape(count, 24) + start).astype(np.float32) % 256


def test_server_info_tells_drafters_limits_and_sources(client):
    info = client.server_info()
    assert (info.protocol_version, info.version) == (1, "0.0-fake")
    assert info.drafter().captures == aerie_draft.captures_at([1, 2, 3])
    assert info.drafter("fake").settings == (
        aerie_draft.Setting("rope_theta", "10000", "config.json: rope_theta"),
    )
    assert (info.limits.max_k, info.limits.session_lease) == (8, 600.0)
    assert info.dtypes == PLAIN_DTYPES
    with pytest.raises(ValueError, match="'other'"):
        info.drafter("other")


def test_an_older_protocol_is_refused(server, client):
    server.protocol_version = 0
    with pytest.raises(aerie_draft.ProtocolMismatch, match="protocol 0"):
        client.server_info()


def test_a_session_commits_drafts_and_closes(server, client, manifest):
    server.drafter = lambda tokens, k: [tokens[-1] + 1 + i for i in range(k)]
    session = client.open_session(manifest, SessionOptions(max_k=3))
    assert session.options.max_k == 3
    first = session.draft(0, [10, 11, 12], rows(3), k=2)
    assert first.tokens == (13, 14)
    assert first.parents == (0, 1)
    assert first.log_probs == (-0.5, -0.5)
    assert (first.length, first.accepted, first.calls) == (3, None, 1)
    assert first.method == "GREEDY_CHAIN"
    assert first.timing.total == 0.00025
    second = session.draft(3, [13, 30], rows(2, 72), k=1, accepted=1)
    assert (second.length, second.accepted) == (5, 1)
    assert server.requests[-1].accepted == 1
    stored = server.sessions[session.session_id].array()
    assert np.array_equal(stored, np.concatenate([rows(3), rows(2, 72)]))
    record = session.close([31, 40])
    assert record == aerie_draft.AcceptanceRecord((0, 2), 2, 3, 2, 2, 0, 0)
    assert record.mean_accept_length == 2.0
    assert record.acceptance_rate == 2 / 3


def test_every_draft_tells_the_server_when_to_stop(server, client, manifest):
    session = client.open_session(manifest)
    session.draft(0, [1], rows(1), k=1, timeout=4.0)
    limit = server.requests[-1].time_limit.ToNanoseconds() / 1e9
    assert 0 < limit <= 3.6


def test_rows_may_come_as_bytes(server, client):
    session = client.open_session(make_manifest(dtype=DType.FLOAT32))
    session.draft(0, [1, 2], rows(2).astype("<f4").tobytes(), k=0)
    assert b"".join(server.sessions[session.session_id].rows) == rows(2).astype("<f4").tobytes()


def test_a_proposal_says_why_it_is_empty(client, manifest):
    proposal = client.open_session(manifest).draft(0, [1], rows(1), k=0)
    assert (proposal.tokens, proposal.no_draft_reason) == ((), "NOT_ASKED")


@pytest.mark.parametrize(
    "limits, calls",
    [
        (dict(max_rows_per_call=4), [4, 4, 2]),
        (dict(max_rows_per_call=5), [5, 5]),
        (dict(max_message_bytes=4096 + 3 * 53), [3, 3, 3, 1]),
    ],
    ids=["by_rows", "no_empty_last_call", "by_bytes"],
)
def test_a_long_prompt_is_cut_by_the_servers_limits(limits, calls):
    with FakeServer(**limits) as server, aerie_draft.DraftClient(
        server.address, timeout=60
    ) as client:
        session = client.open_session(make_manifest())
        proposal = session.draft(0, list(range(10)), rows(10), k=2)
        assert [len(r.token_ids) for r in server.requests] == calls
        assert [r.k for r in server.requests] == [0] * (len(calls) - 1) + [2]
        assert [r.base_length for r in server.requests] == list(np.cumsum([0, *calls[:-1]]))
        assert (proposal.calls, proposal.length, len(proposal.tokens)) == (len(calls), 10, 2)
        assert np.array_equal(server.sessions[session.session_id].array(), rows(10))


def test_the_verdict_of_a_cut_call_is_the_first_chunks():
    with FakeServer(max_rows_per_call=2) as server:
        with aerie_draft.DraftClient(server.address, timeout=60) as client:
            session = client.open_session(make_manifest())
            session.draft(0, [1], rows(1), k=1)
            proposal = session.draft(1, [7, 2, 3], rows(3), k=1, accepted=1)
    assert proposal.accepted == 1
    assert [r.HasField("accepted") for r in server.requests] == [False, True, False]


def test_a_message_without_room_for_a_row_is_refused():
    with FakeServer(max_message_bytes=4096 + 52) as server:
        with aerie_draft.DraftClient(server.address, timeout=60) as client:
            with pytest.raises(ValueError, match="room for at least one row"):
                client.open_session(make_manifest())


def test_a_wrong_row_count_never_leaves_the_client(server, client, manifest):
    session = client.open_session(manifest)
    with pytest.raises(ValueError, match="96 bytes; expected 48"):
        session.draft(0, [1], rows(2), k=1)
    assert not server.requests


def test_a_stateless_call_brings_everything(server, client, manifest):
    proposal = client.draft_once(manifest, [1, 2], rows(2), k=3)
    assert proposal.tokens == (7, 7, 7)
    assert not server.sessions
    assert server.requests[0].seq == 0


def test_numbers_of_a_session_grow(server, client, manifest):
    session = client.open_session(manifest)
    for base in range(3):
        session.draft(base, [1], rows(1), k=1)
    assert [r.seq for r in server.requests] == [1, 2, 3]


def test_a_call_cut_off_after_it_was_served_is_answered_once_more(server, unary, manifest):
    session = unary.open_session(manifest)

    # An UNAVAILABLE without a reason is what a broken connection looks like to the client.
    def break_once(request):
        server.after_draft = lambda request: None
        raise Refusal(grpc.StatusCode.UNAVAILABLE, "")

    server.after_draft = break_once
    proposal = session.draft(0, [1], rows(1), k=1)
    assert (proposal.length, proposal.tokens) == (1, (7,))
    assert [r.seq for r in server.requests] == [1, 1]
    assert len(server.sessions[session.session_id].tokens) == 1


def test_a_server_that_drains_is_not_asked_twice(server, unary, manifest):
    session = unary.open_session(manifest)

    def refuse(request):
        raise Refusal(grpc.StatusCode.UNAVAILABLE, "DRAINING")

    server.before_draft = refuse
    with pytest.raises(aerie_draft.Unavailable):
        session.draft(0, [1], rows(1), k=1)
    assert len(server.requests) == 1


def test_a_deadline_ends_a_call_that_hangs(server, client, manifest):
    session = client.open_session(manifest)
    hang = threading.Event()
    server.before_draft = lambda request: hang.wait(30)
    try:
        with pytest.raises(aerie_draft.DeadlineExceeded):
            session.draft(0, [1], rows(1), k=1, timeout=0.05)
    finally:
        hang.set()


def test_a_stream_that_broke_is_opened_again():
    with FakeServer() as server:
        with aerie_draft.DraftClient(server.address, transport="stream", timeout=60) as client:
            session = client.open_session(make_manifest())
            server.stop()
            with pytest.raises(aerie_draft.Unavailable):
                session.draft(0, [1], rows(1), k=1)
            server.start()
            reopened = open_when_back(client)
            assert reopened.draft(0, [1], rows(1), k=1).length == 1
            with pytest.raises(aerie_draft.SessionUnknown):
                session.draft(0, [1], rows(1), k=1)


def test_sessions_share_a_stream_without_mixing_answers(server):
    server.drafter = lambda tokens, k: [tokens[-1]] * k
    with aerie_draft.DraftClient(server.address, transport="stream", timeout=60) as client:

        def drive(token):
            session = client.open_session(make_manifest())
            return [session.draft(i, [token], rows(1), k=2).tokens for i in range(20)]

        with ThreadPoolExecutor(4) as pool:
            for token, answers in zip(range(8), pool.map(drive, range(8))):
                assert answers == [(token, token)] * 20


def test_an_unknown_transport_is_refused():
    with pytest.raises(ValueError, match="'pigeon'"):
        aerie_draft.DraftClient("localhost:1", transport="pigeon")


def open_when_back(client):
    """Opens as soon as the client has noticed that the server listens again."""
    end = time.monotonic() + 30
    while True:
        try:
            return client.open_session(make_manifest())
        except aerie_draft.Unavailable:
            if time.monotonic() > end:
                raise
