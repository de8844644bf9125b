"""The engine's round goes on whatever happens to the draft server, and drafts come back."""

import grpc
import pytest
from aerie_draft import Availability
from aerie_draft.vllm.connection import Connection, patience_of
from aerie_draft.vllm.drafter import BatchDrafter
from aerie_draft.vllm.link import StreamLink, UnaryLink
from aerie_draft.vllm.settings import Settings
from fake_link import Clock
from fake_server import FakeServer
from vllm_world import DEADLINE, PLAN, Request, World, engine_round


@pytest.fixture
def world():
    return World()


def test_a_silent_server_costs_the_deadline_once(world):
    a, b = Request("a"), Request("b")
    world.round(a.rows([1, 2]), b.rows([1, 2]))
    world.network.silent = True
    before = world.clock.now
    assert world.round(a.rows([3]), b.rows([3])) == [[], []]
    assert world.clock.now - before == pytest.approx(DEADLINE)
    for _ in range(5):
        assert world.round(a.rows([3]), b.rows([3])) == [[], []]
    assert world.clock.now - before == pytest.approx(DEADLINE)
    assert world.availability.failures == {"DeadlineExceeded": 1}


def test_an_answer_that_comes_late_is_taken_over_without_its_draft(world):
    a = Request("a")
    world.round(a.rows([1, 2]))
    world.network.silent = True
    world.round(a.rows([3]))
    world.clock.now += 1.0
    world.network.release()
    # Rows 0 .. 2 are held now. The draft for them was never verified, so nobody may judge it.
    assert world.round(a.rows([4])) == [[7, 7]]
    assert world.server.opened[-1].fork.length == 3
    (draft,) = world.network.drafts()
    assert (draft.base_length, list(draft.token_ids)) == (3, [4])
    assert world.held() == [0, 1, 2, 3]
    assert world.drafter.counts["late"] == 1
    assert len(world.network.links) == 1


def test_a_connection_that_stays_silent_is_replaced(world):
    a = Request("a")
    world.round(a.rows([1, 2]))
    world.network.silent = True
    world.round(a.rows([3]))
    world.clock.now += patience_of(world.settings)
    world.network.revive()
    world.round(a.rows([4]))
    world.clock.now += 4.0
    assert world.round(a.rows([5])) == [[7, 7]]
    assert [link.closed for link in world.network.links] == [True, False]
    assert world.held() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("sessions_survive", [False, True])
def test_a_server_that_restarted_is_asked_again_by_itself_and_sent_all_rows(sessions_survive):
    world = World(sessions_survive)
    a, b = Request("a"), Request("b", 1)
    world.round(a.rows([1, 2]), b.rows([1, 2]))
    world.network.kill()
    assert world.round(a.rows([3]), b.rows([3])) == [[], []]
    world.clock.now += 1.0
    assert world.round(a.rows([4]), b.rows([4])) == [[], []], "nobody listens yet"
    world.network.revive()
    assert world.round(a.rows([5]), b.rows([5])) == [[], []], "asked too early"
    world.clock.now += 2.0
    assert world.round(a.rows([6]), b.rows([6])) == [[7, 7], [7, 7]]
    assert world.held(0) == [0, 1, 2, 3, 4, 5]
    assert world.held(1) == [8, 9, 10, 11, 12, 13]
    assert world.availability.failures["Unavailable"] == 2, "once a round, not a request"
    assert world.drafter.counts["hole"] == 0


def test_a_server_that_dies_amid_a_round_costs_that_round_its_drafts(world):
    a, b = Request("a"), Request("b")
    world.round(a.rows([1, 2]), b.rows([1, 2]))
    dying = []

    def die(request):
        if not dying:
            dying.append(True)
            world.network.silent = True

    world.server.after_draft = die
    wait_any = type(world.network.links[0]).wait_any

    def wait_and_die(link, calls, timeout):
        if dying and not world.network.dead:
            world.network.kill()
        wait_any(link, calls, timeout)

    world.network.links[0].wait_any = lambda calls, timeout: wait_and_die(
        world.network.links[0], calls, timeout
    )
    drafts = world.round(a.rows([3]), b.rows([3]))
    assert drafts == [[7, 7], []]
    assert world.availability.failures == {"Unavailable": 1}


def test_of_a_long_outage_the_newest_rows_are_kept_and_drafts_go_on_behind_a_hole():
    world = World(settings=dict(keep_rows=3))
    a = Request("a")
    world.round(a.rows([1, 2]))
    world.network.kill()
    for token in range(10):
        world.round(a.rows([token]))
    world.network.revive()
    world.clock.now += 10.0
    assert world.round(a.rows([5])) == [[7, 7]]
    # Three were kept, and the newest came on top.
    assert world.server.opened[-1].start == 9
    assert world.held() == [9, 10, 11, 12]
    assert world.drafter.counts["hole"] == 1


def test_evicted_rows_are_sent_again_in_the_same_round(world):
    a = Request("a")
    world.round(a.rows([1, 2, 3]))
    world.server.evict()
    assert world.round(a.rows([4])) == [[7, 7]]
    assert world.held() == [0, 1, 2, 3]
    assert world.drafter.counts["resync"] == 1


def test_rows_that_are_gone_on_both_sides_leave_a_hole():
    world = World(settings=dict(keep_rows=2))
    a = Request("a")
    world.round(a.rows(list(range(10))))
    world.round(a.rows([1, 2]))
    world.server.evict()
    assert world.round(a.rows([3])) == [[7, 7]]
    assert world.server.opened[-1].start > 0
    assert world.held()[-1] == 12
    world.drafter.leave([])
    assert len(world.server.sessions) == 1, "the evicted session was left open"


def test_a_server_that_never_has_enough_does_not_hold_the_round_up(world):
    a = Request("a")
    world.round(a.rows([1]))
    world.refuse(grpc.StatusCode.NOT_FOUND, "SESSION_UNKNOWN")
    assert world.round(a.rows([2])) == [[]]
    assert world.network.kinds().count("draft") == 4


def test_a_full_server_is_asked_again_for_that_request_when_it_says(world):
    from google.protobuf.duration_pb2 import Duration

    a, b = Request("a"), Request("b", 1)
    world.round(a.rows([1]), b.rows([1]))
    code = grpc.StatusCode.RESOURCE_EXHAUSTED
    world.refuse(code, "KV_MEMORY", times=1, retry_after=Duration(seconds=2))
    assert world.round(a.rows([2]), b.rows([2])) == [[], [7, 7]]
    world.clock.now += 1.9
    assert world.round(a.rows([3]), b.rows([3])) == [[], [7, 7]]
    world.clock.now += 0.2
    assert world.round(a.rows([4]), b.rows([4])) == [[7, 7], [7, 7]]
    assert world.held(0) == [0, 1, 2, 3]


def test_a_refusal_of_one_request_leaves_the_others_their_drafts(world, caplog):
    a, b = Request("a"), Request("b", 1)
    world.round(a.rows([1]), b.rows([1]))
    world.refuse(grpc.StatusCode.INVALID_ARGUMENT, "NOT_FINITE", times=1)
    assert world.round(a.rows([2]), b.rows([2])) == [[], [7, 7]]
    assert "no drafts for request a" in caplog.text
    world.clock.now += 6.0
    assert world.round(a.rows([3]), b.rows([3])) == [[7, 7], [7, 7]]


@pytest.mark.parametrize(
    "tokens, parents, length",
    [
        ([64, 1], [0, 1], None),  # outside the vocabulary
        ([1, 2, 3], [0, 1, 2], None),  # more than asked for
        ([1, 2], [0, 0], None),  # a tree
        ([1, 2], [0, 1], 99),  # rows that were never sent
    ],
)
def test_an_answer_that_makes_no_sense_never_reaches_the_engine(
    world, caplog, tokens, parents, length
):
    def garble(response):
        response.tree.token_ids[:] = tokens
        response.tree.parents[:] = parents
        response.length = length or response.length

    world.server.decorate = garble
    assert world.round(Request("a").rows([1, 2, 3])) == [[]]
    assert "ANSWER_INVALID" in caplog.text


def test_another_server_at_the_same_address_is_refused_until_the_right_one_is_back(world, caplog):
    a = Request("a")
    world.round(a.rows([1]))
    world.network.kill()
    world.round(a.rows([2]))
    world.network.revive()
    world.wrong = "other captures"
    world.clock.now += 2.0
    assert world.round(a.rows([3])) == [[]]
    assert "other captures" in caplog.text
    assert world.network.kinds() == []
    world.wrong = None
    world.clock.now += 4.0
    assert world.round(a.rows([4])) == [[7, 7]]
    assert "are back after" in caplog.text


def test_requests_that_end_while_their_call_is_under_way_are_closed_when_it_is_answered(world):
    a = Request("a")
    world.round(a.rows([1, 2]))
    world.network.silent = True
    world.round(a.rows([3]))
    world.drafter.leave(["a"])
    assert world.server.final_tokens == []
    world.network.release()
    world.drafter.leave([])
    assert world.server.final_tokens == [[]]
    assert world.server.sessions == {}


@pytest.mark.parametrize("kind", [StreamLink, UnaryLink])
def test_over_a_real_connection_requests_are_drafted_for_and_survive_a_restart(kind):
    with FakeServer(drafter=lambda tokens, k: [tokens[0]] * k) as server:
        extra = {"patience": 60.0} if kind is UnaryLink else {}
        clock = Clock()  # of the waits between connections alone
        settings = Settings(address=server.address, deadline=60.0)
        connection = Connection(
            PLAN,
            settings,
            lambda: kind(server.address, **extra),
            lambda info: None,
            Availability(clock=clock),
        )
        drafter = BatchDrafter(PLAN, settings, connection)
        requests, last = [Request(f"r{i}", i) for i in range(4)], {}
        for _ in range(3):
            drafts = engine_round(drafter, [r.rows([r.mark + 1, 9]) for r in requests], last)
            assert drafts == [[r.mark + 1] * 2 for r in requests]
        server.stop()
        server.start()
        clock.now += 100.0
        missed = 0
        while engine_round(drafter, [r.rows([9]) for r in requests], last) == [[]] * 4:
            # One round notices that the connection is gone; the next one makes another.
            missed += 1
            clock.now += 100.0
        assert missed <= 20
        rows = sorted(s.array()[:, 0].tolist() for s in server.sessions.values())
        end = requests[0].length
        assert rows == [[float(8 * i + j) for j in range(end)] for i in range(4)]
        drafter.leave([r.name for r in requests])
        drafter.close()


def test_the_token_goes_along_with_every_call():
    seen = []

    class Watched(FakeServer):
        def DraftStream(self, request_iterator, context):
            seen.append(dict(context.invocation_metadata()).get("authorization"))
            yield from super().DraftStream(request_iterator, context)

        def GetServerInfo(self, request, context):
            seen.append(dict(context.invocation_metadata()).get("authorization"))
            return super().GetServerInfo(request, context)

    with Watched() as server:
        settings = Settings(address=server.address, deadline=60.0)
        connection = Connection(
            PLAN,
            settings,
            lambda: StreamLink(server.address, token="secret"),
            lambda info: None,
        )
        drafter = BatchDrafter(PLAN, settings, connection)
        assert drafter.round([Request("a").rows([1])]) == [[7, 7]]
        drafter.close()
    assert seen == ["Bearer secret"] * 2
