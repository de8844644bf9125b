"""All requests of an engine round are drafted for in one burst, and the round goes on whatever
happens to the server."""

import aerie_draft
import grpc
import numpy as np
import pytest
from aerie_draft import Availability
from aerie_draft.vllm.admission import AdmissionError, Plan
from aerie_draft.vllm.drafter import BatchDrafter, patience_of
from aerie_draft.vllm.link import StreamLink, UnaryLink
from aerie_draft.vllm.request_state import NewRows
from aerie_draft.vllm.settings import Settings
from conftest import make_manifest
from fake_link import Clock, Network
from fake_server import FakeServer, Refusal

PLAN = Plan(make_manifest(), k=4, max_model_len=64, aux_boundaries=(1, 2, 3), sources=(0, 1, 2))
DEADLINE = 0.5


class Request:
    """One request as the engine runs it: row i holds the number 8 * `mark` + i everywhere."""

    def __init__(self, name, mark=0):
        self.name = name
        self.mark = mark
        self.length = 0  # rows so far
        self.tokens = []
        self.drafted = ()
        self.new = True

    def rows(self, tokens, k=2, verified=(), accepted=0, first=None, **fields):
        """The next rows; `verified` None: nothing was sampled."""
        first = self.length if first is None else first
        self.tokens[first:] = tokens
        self.length = first + len(tokens)
        numbers = 8 * self.mark + np.arange(first, self.length, dtype=np.float32)
        encoded = aerie_draft.encode_rows(
            np.repeat(numbers[:, None], 24, axis=1), aerie_draft.DType.BFLOAT16
        )
        fields.setdefault("fresh", self.new)
        self.new = False
        return NewRows(self.name, first, list(tokens), encoded, k, verified, accepted, **fields)


class World:
    def __init__(self, sessions_survive=False, **overrides):
        settings = {"deadline": DEADLINE, **overrides.pop("settings", {})}
        self.clock = Clock()
        self.network = Network(self.clock, sessions_survive, **overrides)
        self.server = self.network.server
        self.settings = Settings(address="fake", **settings)
        self.wrong = None
        self.drafter = BatchDrafter(
            PLAN,
            self.settings,
            self.network.connect,
            self.check,
            Availability(first_wait=1.0, longest_wait=4.0, clock=self.clock),
            self.clock,
        )

    def check(self, info):
        if self.wrong:
            raise AdmissionError(self.wrong)

    def round(self, *news):
        self.network.posted.clear()
        return self.drafter.round(news)

    def held(self, number=-1):
        """Rows of a session as the server holds them, by their number."""
        sessions = list(self.server.sessions.values())
        return sessions[number].array()[:, 0].tolist()

    def refuse(self, code, reason, times=99, **fields):
        left = [times]

        def raise_refusal(request):
            if left[0] > 0:
                left[0] -= 1
                raise Refusal(code, reason, **fields)

        self.server.before_draft = raise_refusal


@pytest.fixture
def world():
    return World()


def test_a_new_request_is_opened_and_drafted_for_in_one_round(world):
    a = Request("a")
    assert world.round(a.rows([1, 2, 3])) == [[7, 7]]
    assert world.network.kinds() == ["open_session", "draft"]
    assert world.held() == [0, 1, 2]
    assert world.server.opened[0].options.max_k == 4


def test_a_round_is_one_burst_for_all_its_requests_in_any_order(world):
    requests = {name: Request(name, mark) for mark, name in enumerate("abc")}
    world.round(*(r.rows([1, 2, 3 + r.mark]) for r in requests.values()))
    world.server.drafter = lambda tokens, k: [tokens[2]] * k
    waits = world.network.waits
    drafts = world.round(*(requests[name].rows([4], accepted=0) for name in "cab"))
    assert drafts == [[5, 5], [3, 3], [4, 4]]
    assert world.network.kinds() == ["draft"] * 3
    # Answers came while the burst was written: one look at them all.
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
    world.round(a.rows([7], verified=()))
    (draft,) = world.network.drafts()
    assert (draft.base_length, list(draft.token_ids)) == (2, [3, 7])
    assert not draft.HasField("accepted")
    assert world.held() == [0, 1, 2, 3]


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


def test_an_aborted_request_is_closed_and_its_last_draft_not_judged(world):
    a = Request("a")
    world.round(a.rows([1, 2, 3]))
    world.drafter.leave(["a", "never seen"])
    assert world.server.final_tokens == [[]]
    assert world.server.closed[0].record.num_spec_steps == 0


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
    assert world.drafter.availability.failures == {"DeadlineExceeded": 1}


def test_an_answer_that_comes_late_is_taken_over_without_its_draft(world):
    a = Request("a")
    world.round(a.rows([1, 2]))
    world.network.silent = True
    world.round(a.rows([3]))
    world.clock.now += 1.0
    world.network.release()
    # Rows 0 .. 2 are held now. The draft for them was never verified, so it is taken back.
    assert world.round(a.rows([4])) == [[7, 7]]
    (draft,) = world.network.drafts()
    assert (draft.base_length, list(draft.token_ids)) == (2, [3, 4])
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
    assert world.drafter.availability.failures["Unavailable"] == 2, "once a round, not a request"
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
    assert world.drafter.availability.failures == {"Unavailable": 1}


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


def test_old_rows_are_let_go_once_the_server_holds_them():
    world = World(settings=dict(keep_rows=2))
    a = Request("a")
    world.round(a.rows(list(range(10))))
    for token in range(6):
        world.round(a.rows([token]))
    (state,) = world.drafter._states.values()
    assert state.store.first >= 10


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


def test_past_the_servers_context_a_request_is_not_asked_for_again(world):
    from aerie_draft._proto import draft_pb2

    a = Request("a")

    def at_the_limit(response):
        response.ClearField("tree")
        response.no_draft_reason = draft_pb2.NO_DRAFT_REASON_CONTEXT_LIMIT

    world.server.decorate = at_the_limit
    assert world.round(a.rows([1])) == [[]]
    assert world.round(a.rows([2])) == [[]]
    assert world.network.kinds() == []


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
        clock = Clock()
        drafter = BatchDrafter(
            PLAN,
            Settings(address=server.address, deadline=60.0),
            lambda: kind(server.address, **extra),
            lambda info: None,
            Availability(clock=clock),
        )
        requests = [Request(f"r{i}", i) for i in range(4)]
        for _ in range(3):
            drafts = drafter.round([r.rows([r.mark + 1, 9]) for r in requests])
            assert drafts == [[r.mark + 1] * 2 for r in requests]
        server.stop()
        server.start()
        clock.now += 100.0
        missed = 0
        while drafter.round([r.rows([9]) for r in requests]) == [[]] * 4:
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
        drafter = BatchDrafter(
            PLAN,
            Settings(address=server.address, deadline=60.0),
            lambda: StreamLink(server.address, token="secret"),
            lambda info: None,
        )
        assert drafter.round([Request("a").rows([1])]) == [[7, 7]]
        drafter.close()
    assert seen == ["Bearer secret"] * 2
