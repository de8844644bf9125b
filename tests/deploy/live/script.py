"""The scripted load: some of everything that moves a metric, in an order that leaves no count to chance.

What one would get wrong: one call at a time. How many of overlapping calls share a pass is the scheduler's business,
and so is which session has been idle longest.
"""

import dataclasses
import queue
import time

import grpc
from aerie_draft import SessionOptions, TreeShape
from aerie_draft._proto import draft_pb2, draft_pb2_grpc
from aerie_draft.codec import manifest_message
from aerie_draft.errors import InvalidRequest, ManifestMismatch, Overloaded, ResyncNeeded, SessionUnknown
from aerie_draft.wiring import captures_at

from load import MANIFEST, NOISE, ROW_BYTES, Rpc

MAX_K = 6
MAX_CONTEXT = 1000
PAGE_ROWS = 16
PAGES = 64
FLAGS = ("--max-k", MAX_K, "--max-context", MAX_CONTEXT, "--kv-page-rows", PAGE_ROWS, "--kv-memory", "1536KiB",
         "--max-sessions-per-client", 3,
         # What the guard thinks of noise is not known to the digit; an exporter of these tests speaks for it.
         "--wiring-guard", "off")

# Rows of the prompt, k of the first draft; by round how many tokens are kept, the next k and what the worker reports;
# what the closing call keeps (None: it brings no tokens).
CHAINS = [
    (9, 4, [(2, 4, 2), (0, 6, 0), (5, 3, 5), (3, 1, None)], 1),
    (30, 6, [(6, 6, 6), (1, 6, 4), (0, 2, None)], None),
    (2, 1, [(1, 1, 1), (0, 1, 1), (1, 0, 1)], None),
    (17, 5, [(4, 5, 4), (4, 5, 4), (3, 5, 3), (5, 5, 5)], 2),
    (21, 3, [(0, 3, 0), (0, 3, 0), (1, 3, 1), (0, 3, 0), (0, 3, 0)], 0),
    (5, 2, [], None),
]


def play(worker, address, until):
    """All of it once, and again until that time. At the end two sessions stay open: 40 rows in three pages, and a fork
    that shares two of them."""
    while True:
        _chains(worker)
        _trees(worker)
        _refusals(worker)
        _evictions(worker)
        _stream(worker, address)
        if time.time() >= until:
            break
    left = worker.open()
    left.prompt(39, 3)
    left.keep(0, 2)
    fork = left.fork(worker, 32)
    fork.prompt(4, 4)
    return left, fork


def _chains(worker):
    for rows, k, rounds, last in CHAINS * 3:
        sequence = worker.open()
        sequence.prompt(rows, k)
        for accepted, next_k, says in rounds:
            sequence.keep(accepted, next_k, says)
        sequence.close(last)


def _trees(worker):
    tree = worker.open(SessionOptions(tree=TreeShape(depth=3, top_k=2, total_tokens=6)))
    tree.prompt(12, MAX_K)
    tree.keep(2, MAX_K)
    tree.keep(0, MAX_K)
    tree.keep(1, MAX_K)
    tree.close(1)
    back = worker.open()
    back.prompt(20, 4)
    back.keep(1, 4)
    back.go_back(2, 3)
    back.close(2)
    # Past the context: no draft, no rows, no pass.
    late = worker.open(start=MAX_CONTEXT - 10)
    late.prompt(20, 4)
    late.close()


def _refusals(worker):
    other = dataclasses.replace(MANIFEST, captures=captures_at((3, 16, 28)))
    for _ in range(2):
        worker.refused("wiring", lambda: worker.client.open_session(other), ManifestMismatch)
    sequence = worker.open()
    for _ in range(3):
        worker.refused("shape", lambda: sequence.session.draft(0, [60000], NOISE[:1], 1), InvalidRequest)
    sequence.close()
    worker.refused(None, lambda: sequence.session.draft(0, [1], NOISE[:1], 1), SessionUnknown)
    greedy = [worker.open(client="greedy") for _ in range(3)]
    worker.refused("quota", lambda: worker.open(client="greedy"), Overloaded)
    for sequence in greedy:
        sequence.close()


def _evictions(worker):
    """Three sessions of 25 pages each do not fit into 64: the third pushes out the first."""
    first, second, third = (worker.open() for _ in range(3))
    for sequence in (first, second, third):
        sequence.prompt(400, 2)
    worker.books.evictions += 1
    worker.books.evicted_rows += 400
    worker.refused(None, lambda: first.session.draft(400, [1], NOISE[:1], 1), ResyncNeeded)
    first.close()
    second.close(1)
    third.close(2)


def _stream(worker, address):
    """One session on a stream that ends with it open."""
    books, begun = worker.books, time.perf_counter()
    words = queue.SimpleQueue()
    received = sent = 0
    rows = 8

    def requests():
        nonlocal received
        for message in iter(words.get, None):
            received += message.ByteSize()
            yield message

    with grpc.insecure_channel(address) as channel:
        answers = draft_pb2_grpc.DraftServiceStub(channel).DraftStream(requests())
        opening = draft_pb2.OpenSessionRequest(manifest=manifest_message(MANIFEST))
        words.put(draft_pb2.DraftStreamRequest(id=1, open_session=opening))
        answer = next(answers)
        sent += answer.ByteSize()
        states = draft_pb2.HiddenStates(dtype=draft_pb2.DATA_TYPE_BFLOAT16, data=bytes(rows * ROW_BYTES))
        draft = draft_pb2.DraftRequest(session_id=answer.open_session.session_id, base_length=0,
                                       token_ids=range(rows), hidden_states=states, k=3)
        words.put(draft_pb2.DraftStreamRequest(id=2, draft=draft))
        answer = next(answers)
        sent += answer.ByteSize()
        assert len(answer.draft.tree.token_ids) == 3, answer
        words.put(None)
        assert list(answers) == []
    books.rpcs.append(Rpc("DraftStream", "OK", received, sent, time.perf_counter() - begun))
    books.rows += rows
    books.made.append((3, 3))
    for phase in ("queue", "extend", "step", "total"):
        span = getattr(answer.draft.timing, phase)
        books.phases[phase].append(span.seconds + span.nanos * 1e-9)
    books.unreported["stream_closed"] += 1
    books.ended["stream_closed"] += 1
