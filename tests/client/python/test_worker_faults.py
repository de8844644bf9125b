"""The transformers worker when its server goes away: drafts are lost, no token ever is."""

import aerie_draft
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from aerie_draft import Availability  # noqa: E402
from aerie_draft.transformers import TargetWorker  # noqa: E402
from tiny_target import DRAFTERS, NEVER, PROMPT, Liar, run  # noqa: E402


def test_a_server_that_dies_midway_costs_drafts_but_no_token(make_worker, plain):
    worker, server = make_worker(
        Liar(plain, DRAFTERS["irregular"]), availability=Availability(clock=lambda: 0.0)
    )
    generation = worker.generate(PROMPT, 60, NEVER)
    rounds = []
    for number, made in enumerate(generation):
        rounds.append(made)
        if number == 5:
            server.stop()
    summary = generation.summary
    assert summary.tokens == plain[:60]
    assert [r.proposed > 0 for r in rounds[1:6]] == [True] * 5
    assert not any(r.proposed for r in rounds[6:])
    assert summary.missed_rounds == len(rounds) - 6 - 1  # The last token needs no draft.
    assert summary.record is None


def test_a_server_that_comes_back_is_used_again(make_worker, plain):
    worker, server = make_worker(
        Liar(plain, DRAFTERS["always_right"]), k=1, availability=Availability(0.0, 0.0)
    )
    generation = worker.generate(PROMPT, 60, NEVER)
    proposed = []
    for number, made in enumerate(generation):
        proposed.append(made.proposed)
        if number == 3:
            server.stop()
        elif number == 5:
            server.start()
            wait_until_connected(worker)
    assert generation.summary.tokens == plain[:60]
    assert proposed[4:6] == [0, 0]
    assert all(p == 1 for p in proposed[6:-1])
    assert generation.summary.resyncs <= 1
    (session,) = server.closed
    assert session.tokens == (PROMPT + plain[:60])[1:], "resent from row 0"


def test_a_worker_starts_without_a_server_when_it_knows_the_captures(model, plain):
    with aerie_draft.DraftClient("127.0.0.1:1") as client:
        worker = TargetWorker(model, None, client, 3, captures=aerie_draft.captures_at([1, 2, 3]))
        _, summary = run(worker.generate(PROMPT, 20, NEVER))
        assert summary.tokens == plain[:20]
        assert worker.availability.failures["Unavailable"] >= 1
        with pytest.raises(aerie_draft.Unavailable):
            TargetWorker(model, None, client, 3)


def wait_until_connected(worker):
    """The connection notices a returned server by itself; this waits for that moment."""
    while True:
        try:
            worker._client.server_info(timeout=30)
            return
        except aerie_draft.Unavailable:
            pass
