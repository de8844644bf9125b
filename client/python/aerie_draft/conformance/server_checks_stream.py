"""Many sessions at once: none feels the others; on a stream answers come by id, and sessions end
with it."""

from __future__ import annotations

import queue
import threading
import time

import grpc

from aerie_draft._proto import draft_pb2
from aerie_draft.conformance.lines import Line, Sample, expect_same
from aerie_draft.conformance.probe import (
    PATIENCE,
    Broken,
    CheckList,
    Code,
    NotSeen,
    Probe,
    Refused,
)
from aerie_draft.conformance.server_checks_open import expect

CHECKS = CheckList()
pb = draft_pb2
# Seconds within which the sessions of an ended stream have to be gone.
GONE = 10.0


class _Stream:
    def __init__(self, probe: Probe):
        self._requests: queue.SimpleQueue = queue.SimpleQueue()
        self._ids = iter(range(7, 1 << 30, 10))
        self.call = probe.stub.DraftStream(iter(self._requests.get, None), timeout=PATIENCE)

    def send(self, **request) -> int:
        number = next(self._ids)
        self._requests.put(pb.DraftStreamRequest(id=number, **request))
        return number

    def receive(self) -> pb.DraftStreamResponse:
        try:
            return next(self.call)
        except StopIteration:
            raise Broken("the stream ended", "an answer", "answer every request") from None
        except grpc.RpcError as error:
            raise Broken(
                f"the stream ended with {error.code().name}: {error.details()}",
                "an answer",
                "an error of one request must not end the stream",
            ) from None

    def half_close(self) -> None:
        self._requests.put(None)

    def open(self, probe: Probe) -> str:
        number = self.send(open_session=pb.OpenSessionRequest(manifest=probe.manifest()))
        answer = self.receive()
        expect(
            answer.id == number and answer.HasField("open_session"),
            f"{answer}",
            f"the session of request {number}",
            "carry the id back",
        )
        return answer.open_session.session_id


@CHECKS.add("S-STREAM")
def stream(probe: Probe) -> None:
    line = _Stream(probe)
    names = [line.open(probe) for _ in range(2)]
    samples = [Sample(probe, 61), Sample(probe, 62)]
    expected: dict[str, list[int]] = {name: [] for name in names}
    bad = 0
    for number in range(3):
        for name, sample in zip(names, samples):
            first, end = 4 * number, 4 * number + 4
            request = probe.request(
                name, first, sample.tokens(first, end), sample.rows(first, end), probe.k, number + 1
            )
            expected[name].append(line.send(draft=request))
        if number == 1:
            wrong = probe.request(names[0], 8, [probe.drafter.vocab_size], samples[0].rows(0, 1), 1)
            bad = line.send(draft=wrong)
            expected[names[0]].append(bad)
    whose = {number: name for name, numbers in expected.items() for number in numbers}
    arrived: dict[str, list[int]] = {name: [] for name in names}
    last = {}
    for _ in range(len(whose)):
        answer = line.receive()
        expect(
            answer.id in whose, f"an answer to {answer.id}", f"one of {sorted(whose)}", "carry ids"
        )
        arrived[whose[answer.id]].append(answer.id)
        if answer.id == bad:
            expect(
                answer.HasField("error") and answer.error.code == Code.INVALID_ARGUMENT.value[0],
                f"{answer.WhichOneof('response')} to a bad request",
                "its error",
                "answer with ErrorDetail",
            )
            continue
        expect(
            answer.HasField("draft"),
            f"{answer.WhichOneof('response')}: {answer.error.message}",
            "the draft: the session was not harmed",
            "one request's error is its own",
        )
        last[whose[answer.id]] = answer.draft
    for name in names:
        expect(
            arrived[name] == expected[name],
            f"answers of one session as {arrived[name]}",
            f"{expected[name]}, as they were asked for",
            "answer a session's calls in order",
        )
    for name, seed in zip(names, (61, 62)):
        twin = Line(probe, seed)
        expect_same(
            last[name], twin.advance(12, probe.k), "a session on a stream", "as by unary calls"
        )
        twin.close()
    closing = line.send(close_session=pb.CloseSessionRequest(session_id=names[0]))
    answer = line.receive()
    expect(
        answer.id == closing and answer.HasField("close_session"),
        f"{answer}",
        "its record",
        "close sessions on streams too",
    )
    line.half_close()
    left = list(line.call)
    expect(not left, f"{len(left)} answers that nobody asked for", "none", "answer once")
    expect(
        line.call.code() is Code.OK,
        f"a half-closed stream that ends with {line.call.code().name}",
        "OK",
        "read to the end, answer, end",
    )


@CHECKS.add("S-STREAM-BATCH")
def stream_batch(probe: Probe) -> None:
    most = probe.limits.max_batch_requests
    if most < 3:
        raise NotSeen(f"max_batch_requests is {most}; a batch of 3 is to be sent")
    line = _Stream(probe)
    names = [line.open(probe) for _ in range(2)]
    samples = [Sample(probe, 63), Sample(probe, 64)]
    empty = line.send(batch=pb.DraftStreamBatch())
    answer = line.receive()
    expect(
        answer.id == empty and answer.error.code == Code.INVALID_ARGUMENT.value[0],
        f"{answer.WhichOneof('response')} of id {answer.id} to an empty batch",
        f"INVALID_ARGUMENT under its id, {empty}",
        "refuse a batch that may not be as a whole, under the id of its message",
    )
    batch = pb.DraftStreamBatch()
    for number, (name, sample) in enumerate(zip(names, samples)):
        request = probe.request(name, 0, sample.tokens(0, 4), sample.rows(0, 4), probe.k, 1)
        batch.requests.add(id=1001 + number, draft=request)
    wrong = probe.request(names[0], 4, [probe.drafter.vocab_size], samples[0].rows(4, 5), 1)
    batch.requests.add(id=1003, draft=wrong)
    line.send(batch=batch)
    answers = {answer.id: answer for answer in (line.receive() for _ in range(3))}
    expect(
        sorted(answers) == [1001, 1002, 1003],
        f"answers to {sorted(answers)}",
        "one to each request of the batch, 1001 to 1003",
        "answer the requests of a batch as if each had come alone",
    )
    expect(
        answers[1003].HasField("error"),
        f"{answers[1003].WhichOneof('response')} to a bad request in a batch",
        "its error",
        "answer with ErrorDetail",
    )
    for number, seed in ((1001, 63), (1002, 64)):
        expect(
            answers[number].HasField("draft"),
            f"{answers[number].WhichOneof('response')}: {answers[number].error.message}",
            "the draft: neither the empty batch nor the bad request harmed it",
            "one request's error is its own",
        )
        twin = Line(probe, seed)
        expect_same(
            answers[number].draft, twin.advance(4, probe.k), "a call in a batch", "as by itself"
        )
        twin.close()
    line.half_close()


@CHECKS.add("S-STREAM-SESSIONS")
def stream_sessions(probe: Probe) -> None:
    for cancel in (False, True):
        line = _Stream(probe)
        name = line.open(probe)
        if cancel:
            line.call.cancel()
        line.half_close()
        end = time.monotonic() + GONE
        while True:
            try:
                probe.draft(name, 0, [1], Sample(probe, 1).rows(0, 1), 0)
            except Refused as refused:
                if refused.code is Code.NOT_FOUND:
                    break
                # CANCELLED: the stream ended while the call waited. Nothing else ends it.
                if refused.code is not Code.CANCELLED:
                    raise
            if time.monotonic() > end:
                how = "was cancelled" if cancel else "was half-closed"
                raise Broken(
                    f"a session {GONE:g} s after its stream {how}",
                    "NOT_FOUND",
                    "close what a stream opened when it ends, however it ends",
                )
            time.sleep(0.02)


@CHECKS.add("S-STREAM-GARBAGE")
def stream_garbage(probe: Probe) -> None:
    method = probe.channel.stream_stream("/aerie.v1.DraftService/DraftStream")
    call = method(iter([b"\xff\xff\xff\xff"]), timeout=PATIENCE)
    try:
        for _ in call:
            pass
    except grpc.RpcError:
        pass
    expect(
        call.code() is Code.INVALID_ARGUMENT,
        f"bytes that are no message got {call.code().name}",
        "INVALID_ARGUMENT",
        "tell such a client; do not end its stream as if it had half-closed",
    )
    line = Line(probe, 1)
    line.advance(2, 1)
    line.close()


@CHECKS.add("S-ISOLATION")
def isolation(probe: Probe) -> None:
    def play(line: Line):
        return [line.advance(count, probe.k) for count in (9, 1, 2, 1, 3, 1)]

    quiet = Line(probe, 43)
    expected = play(quiet)
    quiet.close()
    stop = threading.Event()

    def disturb(seed: int) -> None:
        while not stop.is_set():
            try:
                noise = Line(probe, seed)
                noise.advance(17, probe.k)
                bad = probe.request(noise.id, 17, [1], b"\0", 1)
                try:
                    probe.stub.Draft(bad, timeout=60)
                except Exception:  # what it gets is the matter of another rule
                    pass
                noise.advance(2, probe.k)
                noise.close()
            except (Refused, Broken):
                return

    crowd = [threading.Thread(target=disturb, args=(seed,)) for seed in (51, 52)]
    for thread in crowd:
        thread.start()
    try:
        for _ in range(2):
            line = Line(probe, 43)
            for number, (ours, theirs) in enumerate(zip(play(line), expected), 1):
                expect_same(
                    ours,
                    theirs,
                    f"round {number} beside other sessions",
                    "look for rows, pages or slots of one session used for another",
                )
            line.close()
    finally:
        stop.set()
        for thread in crowd:
            thread.join()
