"""An engine round is one message for all its requests, whatever rows the engine brings."""

import grpc
import pytest
from vllm_world import Request, World


@pytest.fixture
def world():
    return World()


def test_a_new_request_is_opened_and_drafted_for_in_one_round(world):
    a = Request("a")
    assert world.round(a.rows([1, 2, 3])) == [[7, 7]]
    assert world.network.kinds() == ["open_session", "draft"]
    assert world.held() == [0, 1, 2]
    assert world.server.opened[0].options.max_k == 4


def test_a_round_is_one_message_for_all_its_requests_in_any_order(world):
    requests = {name: Request(name, mark) for mark, name in enumerate("abc")}
    world.round(*(r.rows([1, 2, 3 + r.mark]) for r in requests.values()))
    world.server.drafter = lambda tokens, k: [tokens[2]] * k
    waits, messages = world.network.waits, world.network.messages
    drafts = world.round(*(requests[name].rows([4], accepted=0) for name in "cab"))
    assert drafts == [[5, 5], [3, 3], [4, 4]]
    assert world.network.kinds() == ["draft"] * 3
    assert world.network.messages == messages + 1
    # Answers came while the message was written: one look at them all.
    assert world.network.waits == waits + 1
    for mark, session in enumerate(world.server.sessions.values()):
        assert session.array()[:, 0].tolist() == [8 * mark + i for i in range(4)]


def test_what_the_engine_kept_is_committed_and_reported(world):
    a = Request("a")
    world.round(a.rows([1, 2, 3]))
    world.round(a.rows([7, 9], verified=(7, 7), accepted=1))
    (draft,) = world.network.drafts()
    assert (draft.base_length, list(draft.token_ids), draft.accepted) == (3, [7, 9], 1)
    (session,) = world.server.sessions.values()
    assert list(session.record.acceptance_histogram) == [0, 1]


def test_a_prompt_in_pieces_is_sent_piece_by_piece_without_drafts(world):
    a = Request("a")
    assert world.round(a.rows([1, 2], k=0, verified=None)) == [[]]
    assert world.held() == [0, 1]
    assert world.round(a.rows([3, 4])) == [[7, 7]]
    assert world.held() == [0, 1, 2, 3]
    assert [d.k for d in world.server.requests] == [0, 2]
    assert world.drafter.counts["missed"] == 0


def test_a_prompt_above_the_servers_limit_goes_in_several_calls_of_one_round():
    world = World(max_rows_per_call=3)
    assert world.round(Request("a").rows(list(range(8)))) == [[7, 7]]
    assert [(d.base_length, len(d.token_ids), d.k) for d in world.network.drafts()] == [
        (0, 3, 0),
        (3, 3, 0),
        (6, 2, 2),
    ]
    assert world.held() == list(range(8))


def test_a_prompt_whose_beginning_was_cached_opens_a_session_at_its_first_row(world):
    a = Request("a")
    a.tokens, a.length = list(range(16)), 16
    assert world.round(a.rows([1, 2])) == [[7, 7]]
    assert world.server.opened[0].start == 16
    assert world.held() == [16, 17]


def test_rows_that_a_preempted_request_repeats_are_not_sent_again(world):
    a = Request("a")
    world.round(a.rows([1, 2, 3]))
    world.round(a.rows([7, 9], verified=(7, 7), accepted=1))
    # Preempted: the engine computes all of it again, in two pieces.
    world.round(a.rows([1, 2, 3], k=0, verified=None, first=0))
    assert world.network.kinds() == []
    a.tokens = [1, 2, 3, 7, 9]
    assert world.round(a.rows([7, 9, 5], first=3)) == [[7, 7]]
    assert world.held() == [0, 1, 2, 3, 4, 5]


def test_a_proposal_that_the_engine_never_verified_is_taken_back(world):
    a = Request("a")
    world.round(a.rows([1, 2, 3]))
    # The tokens are those that were drafted, but the engine came to them by itself.
    assert world.round(a.rows([7], verified=())) == [[7, 7]]
    assert world.network.kinds() == ["open_session", "draft"]
    assert world.server.opened[-1].fork.length == 3
    (draft,) = world.network.drafts()
    assert (draft.base_length, list(draft.token_ids)) == (3, [7])
    assert not draft.HasField("accepted")
    assert world.held() == [0, 1, 2, 3]
    world.drafter.leave(["a"])
    assert [session.record.num_spec_steps for session in world.server.closed] == [0, 0]


def test_a_server_that_has_no_room_for_a_fork_drafts_on_in_the_session_itself(world):
    a = Request("a")
    world.round(a.rows([1, 2, 3]))
    world.network.refuse_opening = True
    assert world.round(a.rows([7], verified=())) == [[7, 7]]
    assert world.held() == [0, 1, 2, 3]
    assert len(world.server.sessions) == 1


def test_a_verified_draft_is_judged_however_late_the_server_hears_of_it(world):
    a = Request("a")
    world.round(a.rows([1, 2, 3]))
    world.refuse(grpc.StatusCode.RESOURCE_EXHAUSTED, "QUEUE_FULL", times=1)
    assert world.round(a.rows([7, 9], verified=(7, 7), accepted=1)) == [[]]
    assert world.round(a.rows([4])) == [[]], "asked again too early"
    world.clock.now += 1.0
    assert world.round(a.rows([5])) == [[7, 7]]
    (draft,) = world.network.drafts()
    assert (draft.base_length, list(draft.token_ids)) == (3, [7, 9, 4, 5])
    assert draft.accepted == 1
    (session,) = world.server.sessions.values()
    assert list(session.record.acceptance_histogram) == [0, 1]


def test_a_draft_that_the_engine_cut_short_is_judged_by_what_it_verified(world):
    a = Request("a")
    world.round(a.rows([1, 2, 3]))
    world.round(a.rows([7, 9], verified=(7,), accepted=1))
    assert world.network.drafts()[0].base_length == 3


def test_other_tokens_than_before_begin_a_new_session(world):
    a = Request("a")
    world.round(a.rows([1, 2, 3]))
    assert world.round(a.rows([1, 5, 6, 7], first=0)) == [[7, 7]]
    assert world.network.kinds() == ["close_session", "open_session", "draft"]
    assert world.held() == [0, 1, 2, 3]
    world.drafter.leave([])
    assert len(world.server.sessions) == 1, "the session of the other text was left open"


def test_a_gap_in_the_rows_begins_a_new_session_behind_it(world):
    a = Request("a")
    world.round(a.rows([1, 2, 3]))
    a.tokens, a.length = list(range(20)), 20
    assert world.round(a.rows([1, 2])) == [[7, 7]]
    assert world.server.opened[-1].start == 20
    assert world.held() == [20, 21]


def test_a_request_whose_name_is_used_again_is_another_one(world):
    a = Request("a")
    world.round(a.rows([1, 2, 3]))
    again = Request("a")
    world.round(again.rows([1, 2, 3, 4]))
    assert len(world.server.opened) == 2
    world.drafter.leave([])
    assert len(world.server.sessions) == 1


def test_a_finished_request_is_closed_with_the_tokens_that_judge_its_last_draft(world):
    a = Request("a")
    world.round(a.rows([1, 2, 3]))
    assert world.round(a.rows([7, 2], verified=(7, 7), accepted=1, ending=True)) == [[]]
    assert world.network.kinds() == [], "a draft that nobody verifies"
    world.drafter.leave(["a"])
    assert world.server.final_tokens == [[7, 2]]
    assert list(world.server.closed[0].record.acceptance_histogram) == [0, 1]
    assert world.drafter.counts["missed"] == 0


def test_a_request_that_ends_without_verifying_its_last_draft_does_not_judge_it(world):
    a = Request("a")
    world.round(a.rows([1, 2, 3]))
    world.round(a.rows([7], verified=(), ending=True))
    world.drafter.leave(["a"])
    assert world.server.final_tokens == [[]]


def test_an_aborted_request_is_closed_and_its_last_draft_not_judged(world):
    a = Request("a")
    world.round(a.rows([1, 2, 3]))
    world.drafter.leave(["a", "never seen"])
    assert world.server.final_tokens == [[]]
    assert world.server.closed[0].record.num_spec_steps == 0


def test_a_request_that_ends_while_its_draft_is_late_is_closed_behind_it_and_not_judged(world):
    a = Request("a")
    world.round(a.rows([1, 2, 3]))
    world.network.silent = True
    assert world.round(a.rows([7], verified=(7,), accepted=1)) == [[]]
    world.drafter.leave(["a"])
    assert world.network.kinds() == ["draft", "close_session"], "an idle engine has no later round"
    assert list(world.network.posted[-1][1].final_token_ids) == []


def test_old_rows_are_let_go_once_the_server_holds_them():
    world = World(settings=dict(keep_rows=2))
    a = Request("a")
    world.round(a.rows(list(range(10))))
    for token in range(6):
        world.round(a.rows([token]))
    (state,) = world.drafter._states.values()
    assert state.store.first >= 10


def test_past_the_servers_context_a_request_is_not_asked_for_again():
    world = World(settings=dict(keep_rows=2))
    from aerie_draft._proto import draft_pb2

    a = Request("a")

    def at_the_limit(response):
        response.ClearField("tree")
        response.no_draft_reason = draft_pb2.NO_DRAFT_REASON_CONTEXT_LIMIT

    world.server.decorate = at_the_limit
    assert world.round(a.rows([1])) == [[]]
    for _ in range(9):
        assert world.round(a.rows([2])) == [[]]
        assert world.network.kinds() == []
    (state,) = world.drafter._states.values()
    assert state.store.first > 0, "rows that are never sent must not pile up"
