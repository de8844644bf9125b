"""What a proxy in front of several servers is told: calls of one session always the same."""

import re

import pytest
from aerie_draft import Availability, DraftClient, DraftedSequence, Fork
from test_client import rows


def test_every_call_of_a_session_carries_its_key(server, unary, manifest):
    session = unary.open_session(manifest)
    session.draft(0, [1], rows(1), k=1)
    session.close()
    assert re.fullmatch("[0-9a-f]{32}", session.key)
    assert [rpc for rpc, _ in server.keys] == ["GetServerInfo", "OpenSession", "Draft", "CloseSession"]
    assert {key for _, key in server.keys[1:]} == {session.key}


def test_sessions_have_keys_of_their_own_and_a_stream_has_one(server, client, manifest):
    first, second = client.open_session(manifest), client.open_session(manifest)
    if ("DraftStream", first.key) in server.keys:
        assert first.key == second.key
        # Limits must be those of the server that gets the stream.
        assert server.keys == [("GetServerInfo", first.key), ("DraftStream", first.key)]
    else:
        assert [key for _, key in server.keys[1:]] == [first.key, second.key]
        assert len({key for _, key in server.keys}) == 3


def test_the_streams_of_one_client_have_one_key(server, manifest):
    with DraftClient(server.address, transport="stream", timeout=60) as client:
        client.open_session(manifest)
        server.stop()
        server.start()
        sequence = DraftedSequence(client, manifest, Availability(first_wait=0))
        sequence.commit([1], rows(1))
        while sequence.propose(1) is None:  # Until the connection stands again.
            pass
        streams = [key for rpc, key in server.keys if rpc == "DraftStream"]
        assert len(streams) >= 2
        assert len(set(streams)) == 1


def test_a_sequence_keeps_its_key_when_its_session_is_opened_anew(server, unary, manifest):
    sequence = DraftedSequence(unary, manifest, Availability())
    sequence.commit([1, 2], rows(2))
    assert sequence.propose(1) is not None
    server.sessions.clear()
    sequence.commit([3], rows(1))
    assert sequence.propose(1) is not None
    assert sequence.resyncs == 1
    assert len({key for rpc, key in server.keys if rpc == "OpenSession"}) == 1


def test_a_fork_goes_where_its_parent_is(server, client, manifest):
    parent = client.open_session(manifest)
    parent.draft(0, [1, 2, 3], rows(3), k=0)
    fork = client.open_session(manifest, fork=Fork(parent.session_id, 2))
    assert fork.key == parent.key
    assert {key for rpc, key in server.keys if rpc != "GetServerInfo"} == {parent.key}


def test_a_key_may_be_given_for_the_fork_of_another_clients_session(server, client, manifest):
    if client.open_session(manifest).key == server.keys[0][1]:  # A stream.
        with pytest.raises(ValueError, match="'k-1'.*one stream.*give none"):
            client.open_session(manifest, key="k-1")
    else:
        assert client.open_session(manifest, key="k-1").key == "k-1"
        assert server.keys[-1] == ("OpenSession", "k-1")


@pytest.mark.parametrize("key", ["", "a b", "a\n", "ä", "a" * 65])
def test_a_key_that_metadata_cannot_carry_is_refused(server, unary, manifest, key):
    with pytest.raises(ValueError, match="expected 1 to 64 letters"):
        unary.open_session(manifest, key=key)
    assert server.keys == []


def test_a_call_without_a_session_has_the_clients_key(server, unary, manifest):
    unary.draft_once(manifest, [1], rows(1), k=1)
    unary.server_info()
    assert len(server.keys) == 2
    assert len({key for _, key in server.keys}) == 1
