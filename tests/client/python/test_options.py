"""Sessions that ask for more than a greedy chain from row 0, and what comes back of their trees."""

import aerie_draft
import numpy as np
import pytest
from aerie_draft import (
    Fork,
    KChoice,
    ProposalProbs,
    Sampling,
    SessionOptions,
    TreeShape,
    VerifyCost,
)
from conftest import make_manifest
from test_client import rows

TREE = TreeShape(depth=3, top_k=4, total_tokens=5)


def make_tree(response):
    """root -> 5, 6; 6 -> 7, 8; 7 -> 9: what a server of `TREE` might say."""
    tree = response.tree
    for field in ("token_ids", "parents", "log_probs", "positions"):
        tree.ClearField(field)
    tree.token_ids.extend([5, 6, 7, 8, 9])
    tree.parents.extend([0, 0, 2, 2, 3])
    tree.log_probs.extend([-0.5] * 5)
    tree.positions.extend(response.length + depth for depth in (1, 1, 2, 2, 3))


def test_a_session_asks_for_all_that_its_options_say(server, client, manifest):
    options = SessionOptions(
        max_k=6,
        tree=TREE,
        sampling=Sampling(0.5, top_m=9, seed=2**63, proposal_probs=ProposalProbs.TOP_M),
        ancestor_mask=True,
        links=True,
    )
    session = client.open_session(manifest, options, start=500, client="blue")
    asked = server.opened[0]
    shape = asked.options.tree
    assert (shape.depth, shape.top_k, shape.total_tokens) == (3, 4, 5)
    sampling = asked.options.sampling
    assert (sampling.temperature, sampling.top_m, sampling.seed) == (0.5, 9, 2**63)
    assert (asked.start, asked.client, asked.HasField("fork")) == (500, "blue", False)
    assert session.options == options
    assert session.length == 500


TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_traceparent_goes_along_with_each_call_of_a_session(server, client, manifest):
    session = client.open_session(manifest, traceparent=TRACE)
    session.draft(0, [1], rows(1), k=2)
    session.close()
    assert server.opened[0].traceparent == TRACE
    # On a stream the opening alone carries it, in its message.
    assert server.traces in (
        [],
        [("OpenSession", TRACE), ("Draft", TRACE), ("CloseSession", TRACE)],
    )


@pytest.mark.parametrize("traceparent", ["", "no trace", "broken\nline"])
def test_without_a_readable_traceparent_calls_go_without(server, client, manifest, traceparent):
    session = client.open_session(manifest, traceparent=traceparent)
    session.draft(0, [1], rows(1), k=2)
    session.close()
    assert all(trace is None for _, trace in server.traces)


def test_a_record_has_its_steps_when_they_are_asked_for(server, client, manifest):
    session = client.open_session(manifest, SessionOptions(acceptance_detail=True))
    assert server.opened[0].options.acceptance_detail
    assert session.options.acceptance_detail
    kept = server.sessions[session.session_id].record
    kept.per_step_accepted.extend([1, 0])
    kept.per_step_drafted.extend([4, 3])
    record = session.close()
    assert (record.per_step_accepted, record.per_step_drafted) == ((1, 0), (4, 3))


def test_what_is_not_asked_for_is_not_on_the_wire(server, client, manifest):
    session = client.open_session(manifest)
    options = server.opened[0].options
    assert not options.HasField("max_k")
    assert not options.HasField("tree")
    assert not options.HasField("sampling")
    assert session.options == SessionOptions(max_k=8)


def test_the_servers_choices_are_known_as_the_options_in_force(server, client, manifest):
    session = client.open_session(manifest, SessionOptions(sampling=Sampling(1.0, seed=3)))
    assert session.options == SessionOptions(max_k=8, sampling=Sampling(1.0, top_m=64, seed=3))


@pytest.mark.parametrize("options", [SessionOptions(tree=TREE), SessionOptions(adaptive_k=True)])
def test_a_server_that_drafts_otherwise_is_not_gone_on_with(server, client, manifest, options):
    server.bend_options = lambda told: told.Clear()
    with pytest.raises(aerie_draft.ProtocolMismatch, match="expected SessionOptions"):
        client.open_session(manifest, options)
    assert not server.sessions, "left open on the server"


def test_a_fork_begins_with_the_rows_of_its_parent(server, client, manifest):
    parent = client.open_session(manifest)
    parent.draft(0, [1, 2, 3, 4], rows(4), k=1)
    fork = client.open_session(manifest, fork=Fork(parent.session_id, 3))
    assert fork.length == 3
    assert fork.draft(3, [9], rows(1), k=1).length == 4
    assert server.sessions[fork.session_id].tokens == [1, 2, 3, 9]
    with pytest.raises(aerie_draft.SessionUnknown):
        client.open_session(manifest, fork=Fork("none", 3))


def test_a_tree_comes_with_parents_positions_and_depths(server, client, manifest):
    server.decorate = make_tree
    proposal = client.open_session(manifest, SessionOptions(tree=TREE)).draft(
        0, [1, 2], rows(2), k=5
    )
    assert proposal.parents == (0, 0, 2, 2, 3)
    assert proposal.positions == (3, 3, 4, 4, 5)
    assert proposal.depths == (1, 1, 2, 2, 3)
    assert proposal.ancestor_mask is None
    assert (proposal.first_child, proposal.next_sibling) == ((), ())
    assert (proposal.chosen_probs, proposal.distributions) == ((), {})


@pytest.mark.parametrize(
    "continuation, accepted",
    [([6, 7, 9, 1], 3), ([6, 8, 9], 2), ([5, 7], 1), ([7], 0), ([], 0), ([6, 7], 2)],
)
def test_a_tree_is_accepted_along_one_path(server, client, manifest, continuation, accepted):
    server.decorate = make_tree
    proposal = client.open_session(manifest, SessionOptions(tree=TREE)).draft(
        0, [1, 2], rows(2), k=5
    )
    assert proposal.accepted_by(continuation) == accepted


def test_mask_and_links_come_as_arrays_and_tuples(server, client, manifest):
    def decorate(response):
        make_tree(response)
        response.tree.ancestor_mask = bytes([1, 3, 5, 0b1101, 0b10101, 0b101101])
        response.tree.first_child.extend([1, -1, 3, 5, -1, -1])
        response.tree.next_sibling.extend([-1, 2, -1, 4, -1, -1])

    server.decorate = decorate
    options = SessionOptions(tree=TREE, ancestor_mask=True, links=True)
    proposal = client.open_session(manifest, options).draft(0, [1], rows(1), k=5)
    expected = np.zeros((6, 6), bool)
    for node, seen in enumerate([[0], [0, 1], [0, 2], [0, 2, 3], [0, 2, 4], [0, 2, 3, 5]]):
        expected[node, seen] = True
    assert proposal.ancestor_mask.dtype == bool
    assert np.array_equal(proposal.ancestor_mask, expected)
    assert proposal.first_child == (1, -1, 3, 5, -1, -1)
    assert proposal.next_sibling == (-1, 2, -1, 4, -1, -1)


def test_a_mask_of_more_than_a_byte_a_row_is_read_row_by_row(server, client, manifest):
    def decorate(response):  # A chain of eight: node 8 is bit 0 of the second byte.
        chain = [(1 << (node + 1)) - 1 for node in range(9)]
        response.tree.ancestor_mask = b"".join(row.to_bytes(2, "little") for row in chain)

    server.decorate = decorate
    options = SessionOptions(ancestor_mask=True)
    proposal = client.open_session(manifest, options).draft(0, [1], rows(1), k=8)
    assert np.array_equal(proposal.ancestor_mask, np.tril(np.ones((9, 9), bool)))


def test_a_mask_of_another_size_is_an_error(server, client, manifest):
    server.decorate = lambda response: setattr(response.tree, "ancestor_mask", b"123")
    session = client.open_session(manifest, SessionOptions(ancestor_mask=True))
    with pytest.raises(aerie_draft.AerieError, match="2 nodes has 3 bytes; expected 2"):
        session.draft(0, [1], rows(1), k=1)


def test_distributions_come_by_node(server, client, manifest):
    def decorate(response):
        make_tree(response)
        response.tree.chosen_probs.extend([0.5, 0.25, 0.75, 0.25, 1.0])
        response.tree.distributions.add(node=0, token_ids=[5, 4, 6], probs=[0.5, 0.25, 0.25])
        response.tree.distributions.add(node=2, token_ids=[7, 8], probs=[0.75, 0.25])

    server.decorate = decorate
    options = SessionOptions(
        tree=TREE, sampling=Sampling(1.0, proposal_probs=ProposalProbs.TOP_M)
    )
    proposal = client.open_session(manifest, options).draft(0, [1], rows(1), k=5)
    assert proposal.chosen_probs == (0.5, 0.25, 0.75, 0.25, 1.0)
    assert set(proposal.distributions) == {0, 2}
    root = proposal.distributions[0]
    assert root.tokens.tolist() == [5, 4, 6]
    assert root.probs.tolist() == [0.5, 0.25, 0.25]
    assert (root.tokens.dtype, root.probs.dtype) == (np.int64, np.float32)


def test_adaptive_k_is_told_what_verification_took_and_tells_its_choice(server, client, manifest):
    def decorate(response):
        choice = response.k_choice
        choice.k, choice.expected_tokens, choice.exploring = 2, 1.5, True
        choice.draft_time.nanos, choice.verify_time.nanos = 90_000, 8_000_000

    server.decorate = decorate
    session = client.open_session(manifest, SessionOptions(adaptive_k=True))
    proposal = session.draft(0, [1], rows(1), k=4, verify_cost=VerifyCost(1.25, 3))
    cost = server.requests[0].verify_cost
    assert (cost.time.seconds, cost.time.nanos, cost.draft_tokens) == (1, 250_000_000, 3)
    assert proposal.k_choice == KChoice(2, 1.5, 9e-05, 0.008, True)


def test_of_a_cut_prompt_the_call_that_drafts_brings_the_cost():
    from fake_server import FakeServer

    with FakeServer(max_rows_per_call=2) as server:
        with aerie_draft.DraftClient(server.address, timeout=60) as client:
            session = client.open_session(make_manifest(), SessionOptions(adaptive_k=True))
            session.draft(0, [1, 2, 3], rows(3), k=4, verify_cost=VerifyCost(0.01, 3))
    assert [r.HasField("verify_cost") for r in server.requests] == [False, True]
