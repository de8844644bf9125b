"""What the calls of an engine round travel in over a real stream."""

import grpc
from aerie_draft import errors
from aerie_draft._proto import draft_pb2
from aerie_draft.vllm.connection import Connection
from aerie_draft.vllm.drafter import BatchDrafter
from aerie_draft.vllm.link import StreamLink
from aerie_draft.vllm.settings import Settings
from fake_server import FakeServer
from vllm_world import PLAN, Request, engine_round


def drafts_of_rounds(server, count=7, rounds=2):
    """Drafts that as many requests got, round by round."""
    settings = Settings(address=server.address, deadline=60.0)
    connection = Connection(PLAN, settings, lambda: StreamLink(server.address), lambda info: None)
    drafter = BatchDrafter(PLAN, settings, connection)
    requests, last = [Request(f"r{i}", i) for i in range(count)], {}
    made = [
        engine_round(drafter, [r.rows([r.mark + 1, 9]) for r in requests], last)
        for _ in range(rounds)
    ]
    drafter.leave([r.name for r in requests])
    drafter.close()
    return made


def echo(tokens, k):
    return [tokens[0]] * k


def test_a_round_is_as_few_messages_as_the_server_takes():
    with FakeServer(drafter=echo, max_batch_requests=3) as server:
        made = drafts_of_rounds(server)
    assert made == [[[i + 1] * 2 for i in range(7)]] * 2
    # Sessions are opened, then each round's rows are sent: twice three requests and one alone.
    assert server.batches[:2] == [3, 3]
    assert server.batches[-2:] == [3, 3]
    assert max(server.batches) == 3


def test_a_message_is_no_larger_than_the_server_takes():
    # A request of two rows is about 120 bytes long.
    with FakeServer(drafter=echo, max_batch_requests=64, max_message_bytes=400) as server:
        made = drafts_of_rounds(server)
    assert made == [[[i + 1] * 2 for i in range(7)]] * 2
    assert 1 < max(server.batches) < 7


def test_a_server_that_knows_no_batches_gets_none():
    with FakeServer(drafter=echo) as server:
        made = drafts_of_rounds(server)
    assert made == [[[i + 1] * 2 for i in range(7)]] * 2
    assert server.batches == []


def test_a_batch_that_is_refused_whole_fails_its_calls_at_once():
    class Refusing(FakeServer):
        def DraftStream(self, request_iterator, context):
            for message in request_iterator:
                response = draft_pb2.DraftStreamResponse(id=message.id)
                response.error.code = grpc.StatusCode.INVALID_ARGUMENT.value[0]
                response.error.message = "no batch seen; expected none; send none"
                yield response

    with Refusing(max_batch_requests=8) as server:
        link = StreamLink(server.address)
        link.server_info(60.0)
        closing = draft_pb2.CloseSessionRequest(session_id="s1")
        calls = link.post([("close_session", closing)] * 2)
        for call in calls:
            link.wait_any([call], 60.0)
            assert isinstance(call.error, errors.AerieError), call.error
        link.close()
