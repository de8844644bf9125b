"""A drafted sequence outlives its server: it goes without drafts, catches up, and counts both."""

import aerie_draft
import grpc
import numpy as np
import pytest
from aerie_draft import Availability, DraftedSequence, SessionOptions
from conftest import make_manifest
from fake_server import FakeServer, Refusal

NO_FAULT = lambda request: None  # noqa: E731


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def rows(first, count):
    """Rows that tell their own index, exactly in bf16."""
    return np.repeat(np.arange(first, first + count, dtype=np.float32)[:, None], 24, axis=1)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def availability(clock):
    return Availability(first_wait=1.0, longest_wait=3.0, clock=clock)


@pytest.fixture
def sequence(unary, availability):
    return DraftedSequence(
        unary, make_manifest(), availability, SessionOptions(max_k=4), timeout=30
    )


def refuse(server, code, reason, **fields):
    def raise_refusal(request):
        raise Refusal(code, reason, **fields)

    server.before_draft = raise_refusal


def held_rows(server):
    (session,) = server.sessions.values()
    return session.array()[:, 0].tolist()


def test_each_round_sends_only_its_new_rows_and_reports_what_was_kept(server, sequence):
    sequence.commit([1, 2, 3], rows(0, 3))
    assert sequence.propose(2).tokens == (7, 7)
    sequence.commit([7, 5], rows(3, 2))
    assert sequence.propose(2).accepted == 1
    assert [(r.base_length, len(r.token_ids)) for r in server.requests] == [(0, 3), (3, 2)]
    assert server.requests[1].accepted == 1
    record = sequence.finish([7, 7, 9])
    assert (record.spec_steps, record.accepted_draft_tokens) == (2, 3)


def test_a_worker_without_a_server_goes_on_and_asks_seldom(clock, availability):
    with aerie_draft.DraftClient("127.0.0.1:1") as client:
        sequence = DraftedSequence(client, make_manifest(), availability)
        # Waits of 1 s, 2 s, then 3 s, the longest.
        asked = {100.0: 1, 100.9: 1, 101.0: 2, 102.9: 2, 103.0: 3, 105.9: 3, 106.0: 4}
        for i, (clock.now, failures) in enumerate(asked.items()):
            sequence.commit([1], rows(i, 1))
            assert sequence.propose(2) is None
            assert availability.failures == {"Unavailable": failures}, clock.now
        assert sequence.missed == 7
        assert sequence.finish([1]) is None


def test_a_server_that_restarted_is_sent_all_rows_again(server, sequence, clock):
    sequence.commit([1, 2], rows(0, 2))
    sequence.propose(2)
    server.stop()
    sequence.commit([3], rows(2, 1))
    assert sequence.propose(2) is None
    server.start()
    sequence.commit([4, 5], rows(3, 2))
    proposal = None
    while proposal is None:
        # The connection itself waits a moment (real time) before it tries again.
        clock.now += 10
        proposal = sequence.propose(2)
    assert proposal.length == 5
    assert held_rows(server) == [0, 1, 2, 3, 4]
    assert (sequence.resyncs, proposal.accepted) == (1, None)


def test_rows_of_missed_rounds_follow_with_the_next_call(server, sequence, clock):
    sequence.commit([1], rows(0, 1))
    refuse(server, grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL")
    assert sequence.propose(1) is None
    server.before_draft = NO_FAULT
    sequence.commit([2], rows(1, 1))
    assert sequence.propose(1) is None, "asked again too early"
    clock.now += 1
    sequence.commit([3], rows(2, 1))
    assert sequence.propose(1).length == 3
    assert held_rows(server) == [0, 1, 2]
    assert sequence.missed == 2


def test_the_servers_own_word_decides_how_long_to_wait(server, sequence, clock, availability):
    from google.protobuf.duration_pb2 import Duration

    refuse(
        server, grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL", retry_after=Duration(seconds=8)
    )
    sequence.commit([1], rows(0, 1))
    sequence.propose(1)
    clock.now += 7.9
    assert not availability.ready()
    clock.now += 0.1
    assert availability.ready()


def test_rows_are_resent_from_where_the_server_says(server, sequence):
    sequence.commit([1, 2, 3], rows(0, 3))
    sequence.propose(1)
    (session,) = server.sessions.values()
    del session.tokens[1:], session.rows[1:]
    session.proposed = None
    sequence.commit([4], rows(3, 1))
    assert sequence.propose(1).length == 4
    assert held_rows(server) == [0, 1, 2, 3]
    assert server.requests[-1].base_length == 1
    assert not server.requests[-1].HasField("accepted"), "of a proposal that the server lost"
    assert sequence.resyncs == 1


def test_a_session_whose_lease_ran_out_is_opened_again(server, sequence):
    sequence.commit([1], rows(0, 1))
    sequence.propose(1)
    server.sessions.clear()
    sequence.commit([2], rows(1, 1))
    assert sequence.propose(1).length == 2
    assert held_rows(server) == [0, 1]


def test_a_call_whose_answer_came_too_late_is_sent_over(server, sequence, clock):
    sequence.commit([1], rows(0, 1))
    server.after_draft = lambda request: (_ for _ in ()).throw(
        Refusal(grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE")
    )
    assert sequence.propose(1) is None
    server.after_draft = NO_FAULT
    clock.now += 1
    sequence.commit([2], rows(1, 1))
    assert sequence.propose(1).length == 2
    assert held_rows(server) == [0, 1]


def test_a_server_that_never_has_enough_is_treated_as_down(server, sequence):
    refuse(server, grpc.StatusCode.NOT_FOUND, "SESSION_UNKNOWN")
    sequence.commit([1], rows(0, 1))
    assert sequence.propose(1) is None
    assert len(server.requests) == 4


def test_past_the_servers_context_nothing_more_is_sent(server, sequence):
    from aerie_draft._proto import draft_pb2

    serve = server._serve

    def at_the_limit(request):
        response = serve(request)
        response.ClearField("tree")
        response.no_draft_reason = draft_pb2.NO_DRAFT_REASON_CONTEXT_LIMIT
        return response

    server._serve = at_the_limit
    for i in range(3):
        sequence.commit([1], rows(i, 1))
        sequence.propose(2)
    assert len(server.requests) == 1
    assert sequence.missed == 0


@pytest.mark.parametrize("boundaries", [(1, 2), (0, 2, 3)])
def test_what_no_waiting_cures_is_raised(unary, availability, boundaries):
    sequence = DraftedSequence(unary, make_manifest(boundaries), availability)
    sequence.commit([1], np.zeros((1, 8 * len(boundaries)), np.float32))
    with pytest.raises(aerie_draft.ManifestMismatch):
        sequence.propose(1)


def test_rows_of_another_shape_are_refused_at_commit(sequence):
    with pytest.raises(ValueError, match=r"shape \[2, 24\]; expected \[1, 24\]"):
        sequence.commit([1], rows(0, 2))


def test_a_long_history_is_resent_whole_after_many_small_commits():
    with FakeServer(max_rows_per_call=3) as server:
        with aerie_draft.DraftClient(server.address, timeout=60) as client:
            sequence = DraftedSequence(client, make_manifest(), Availability())
            first = 0
            for count in (4, 1, 2, 1, 3):
                sequence.commit(list(range(count)), rows(first, count))
                first += count
            assert sequence.propose(1).length == 11
            assert held_rows(server) == list(range(11))
