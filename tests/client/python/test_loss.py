"""Rows that the server lost: sent again, or drafted on without, as the worker chose; never silent."""

import logging

import numpy as np
import pytest
from aerie_draft import Availability, DraftedSequence, OnLoss, SessionOptions, TreeShape
from aerie_draft.row_store import RowStore
from conftest import make_manifest
from test_options import make_tree
from test_sequence import Clock, held_rows, rows


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def availability(clock):
    return Availability(clock=clock)


@pytest.fixture
def frugal(unary, availability):
    """Keeps at least three rows of what the server holds."""
    return DraftedSequence(
        unary,
        make_manifest(),
        availability,
        on_loss=OnLoss.REOPEN,
        keep_rows=3,
        client_name="blue",
        timeout=30,
    )


def grow(sequence, count):
    """Commits rows one by one, each with a draft behind it."""
    for _ in range(count):
        sequence.commit([sequence.length % 60], rows(sequence.length, 1))
        assert sequence.propose(2) is not None


def test_evicted_rows_are_sent_again_by_default(server, unary, availability):
    sequence = DraftedSequence(unary, make_manifest(), availability, timeout=30)
    grow(sequence, 8)
    server.evict()
    grow(sequence, 1)
    assert held_rows(server) == list(range(9))
    assert availability.losses == {("EVICTED", "resent"): 1}
    assert (sequence.resyncs, sequence.holes) == (1, 0)
    assert len(server.opened) == 1


def test_a_sequence_that_keeps_few_rows_goes_on_with_a_hole(server, frugal, availability, caplog):
    grow(frugal, 10)
    server.evict()
    with caplog.at_level(logging.WARNING, "aerie_draft"):
        grow(frugal, 1)
    opened = server.opened[1]
    assert (opened.start, opened.client) == (7, "blue")
    assert held_rows(server) == [7, 8, 9, 10]
    assert server.sessions.keys() == {"s2"}, "the session without rows is left open"
    assert availability.losses == {("EVICTED", "reopened with a hole"): 1}
    assert (frugal.resyncs, frugal.holes, frugal.missed) == (1, 1, 0)
    assert "reopened with a hole; its rows begin at 7" in caplog.text
    grow(frugal, 2)
    assert server.requests[-1].base_length == 12
    assert frugal.finish() is not None


def test_a_forgotten_session_is_reopened_with_a_hole_too(server, frugal, availability):
    grow(frugal, 10)
    server.sessions.clear()
    grow(frugal, 1)
    assert server.opened[1].start == 7
    assert held_rows(server) == [7, 8, 9, 10]
    assert availability.losses == {("SESSION_UNKNOWN", "reopened with a hole"): 1}


def test_without_rows_let_go_there_is_no_hole(server, frugal, availability):
    grow(frugal, 3)
    server.sessions.clear()
    grow(frugal, 1)
    assert server.opened[1].start == 0
    assert held_rows(server) == [0, 1, 2, 3]
    assert availability.losses == {("SESSION_UNKNOWN", "reopened"): 1}
    assert frugal.holes == 0


def test_rows_that_are_still_held_are_resent_without_reopening(server, frugal, availability):
    grow(frugal, 10)
    (session,) = server.sessions.values()
    del session.tokens[8:], session.rows[8:]
    session.proposed = None
    grow(frugal, 1)
    assert len(server.opened) == 1
    assert held_rows(server) == list(range(11))
    assert availability.losses == {("BASE_LENGTH_AHEAD", "resent"): 1}


def test_rows_of_missed_rounds_are_kept_until_the_server_has_them(
    server, frugal, availability, clock
):
    grow(frugal, 6)
    server.stop()
    frugal.commit([1] * 9, rows(6, 9))
    assert frugal.propose(2) is None
    assert availability.failures["Unavailable"] == 1
    server.start()
    while frugal.propose(2) is None:
        # The connection itself waits a moment (real time) before it tries again.
        clock.now += 10
    assert held_rows(server) == list(range(3, 15))


def test_a_sequence_may_begin_where_the_targets_cache_ends(server, unary, availability):
    sequence = DraftedSequence(unary, make_manifest(), availability, start=100, timeout=30)
    assert sequence.length == 100
    sequence.commit([1, 2], rows(100, 2))
    assert sequence.propose(2).length == 102
    assert server.opened[0].start == 100
    server.sessions.clear()
    sequence.commit([3], rows(102, 1))
    assert sequence.propose(2).length == 103
    assert server.opened[1].start == 100
    assert held_rows(server) == [100, 101, 102]
    assert availability.losses == {("SESSION_UNKNOWN", "reopened"): 1}


def test_the_kept_path_of_a_tree_is_what_is_reported(server, unary, availability):
    server.decorate = make_tree
    options = SessionOptions(tree=TreeShape(3, 4, 5))
    sequence = DraftedSequence(unary, make_manifest(), availability, options, timeout=30)
    sequence.commit([1, 2], rows(0, 2))
    sequence.propose(5)
    sequence.commit([6, 8, 40], rows(2, 3))
    sequence.propose(5)
    assert server.requests[1].accepted == 2


def test_keeping_no_row_is_refused(unary, availability):
    with pytest.raises(ValueError, match="keep_rows is 0; expected 1 or more"):
        DraftedSequence(unary, make_manifest(), availability, keep_rows=0)


def test_a_row_store_forgets_only_what_it_may():
    random = np.random.default_rng(1)
    for _ in range(200):
        store = RowStore(5, 24, np.float32)
        limit = 5
        for _ in range(12):
            count = int(random.integers(0, 9))
            store.append(list(range(store.end, store.end + count)), rows(store.end, count))
            limit = max(limit, int(random.integers(5, store.end + 1)))
            store.let_go_before(limit)
            assert store.first <= limit
            # What is left too much is less than half of the piece that it is in.
            assert limit - store.first <= 4
            for first in range(store.first, store.end + 1):
                assert store.tokens_from(first) == list(range(first, store.end))
                assert store.rows_from(first)[:, 0].tolist() == list(range(first, store.end))
