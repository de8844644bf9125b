"""The transformers worker: its text is plain greedy decoding's, whatever the drafter proposes.

The target is a small random Llama; the drafter knows the right text and lies at chosen places.
"""

import aerie_draft
import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from aerie_draft.transformers import CachedTarget, TargetWorker  # noqa: E402
from tiny_target import DRAFTERS, NEVER, PROMPT, VOCAB, Liar, run  # noqa: E402


@pytest.mark.parametrize("k", [1, 2, 4, 7])
@pytest.mark.parametrize("wrong", DRAFTERS.values(), ids=DRAFTERS.keys())
def test_drafted_text_is_plain_text(make_worker, plain, wrong, k):
    worker, server = make_worker(Liar(plain, wrong), k)
    rounds, summary = run(worker.generate(PROMPT, 60, NEVER))
    assert summary.tokens == plain[:60]
    # The server's own count, found from tokens alone, is the worker's.
    record = summary.record
    assert record.spec_steps == summary.rounds
    assert record.accepted_draft_tokens == summary.accepted
    assert record.draft_tokens == summary.draft_tokens == sum(summary.proposed_by_position)
    assert record.accepted_draft_tokens == sum(sum(r.accepted) for r in rounds)
    assert not server.sessions


def test_a_worker_with_fc_sends_what_it_makes_of_the_captures(make_worker, model, plain):
    width = model.config.hidden_size
    matrix = np.random.default_rng(3).normal(size=(5, 3 * width)).astype(np.float32)
    fc = aerie_draft.FusedFc("F32", matrix)
    drafter = Liar(plain, DRAFTERS["always_right"])
    worker, server = make_worker(
        drafter, k=4, fused=fc, captures=aerie_draft.captures_at((1, 2, 3))
    )
    server.fc_digest = fc.features.fc_digest
    _, summary = run(worker.generate(PROMPT, 30, NEVER))
    assert summary.tokens == plain[:30]
    assert summary.missed_rounds == 0 and summary.accepted > 0
    (session,) = server.closed
    text = PROMPT + plain[:30]
    with torch.inference_mode():
        states = model(torch.tensor([text]), output_hidden_states=True).hidden_states
    expected = torch.cat([states[b][0] for b in (1, 2, 3)], dim=-1).numpy() @ matrix.T
    rows = session.array()
    assert rows.shape[1] == 5
    assert np.all(np.abs(rows - expected[: len(rows)]) <= 0.01 * np.abs(expected).max())


@pytest.mark.parametrize("wrong", DRAFTERS.values(), ids=DRAFTERS.keys())
def test_text_drafted_with_trees_is_plain_text(make_worker, model, plain, wrong):
    shape = aerie_draft.TreeShape(depth=4, top_k=2, total_tokens=8)
    options = aerie_draft.SessionOptions(tree=shape)
    worker, server = make_worker(Liar(plain, wrong), k=8, options=options)
    rounds, summary = run(worker.generate(PROMPT, 60, NEVER))
    assert summary.tokens == plain[:60]
    record = summary.record
    assert record.spec_steps == summary.rounds
    assert record.accepted_draft_tokens == summary.accepted == sum(sum(r.accepted) for r in rounds)
    assert record.draft_tokens == summary.draft_tokens
    # The rows are those of the accepted path, not of its siblings.
    (session,) = server.closed
    text = PROMPT + plain[:60]
    with torch.inference_mode():
        states = model(torch.tensor([text]), output_hidden_states=True).hidden_states
    expected = torch.cat([states[b][0] for b in (1, 2, 3)], dim=-1).numpy()
    rows = session.array()
    assert np.all(np.abs(rows - expected[: len(rows)]) <= 0.01 * np.abs(expected).max())


def test_a_perfect_tree_saves_forwards(make_worker, plain):
    shape = aerie_draft.TreeShape(depth=4, top_k=2, total_tokens=8)
    worker, _ = make_worker(
        Liar(plain, DRAFTERS["always_right"]), k=8, options=aerie_draft.SessionOptions(tree=shape)
    )
    _, summary = run(worker.generate(PROMPT, 61, NEVER))
    assert summary.forwards == 1 + 60 // 5
    assert summary.acceptance_by_position == [1, 1, 1, 1]


def test_a_perfect_drafter_saves_forwards(make_worker, plain):
    worker, _ = make_worker(Liar(plain, DRAFTERS["always_right"]), k=4)
    rounds, summary = run(worker.generate(PROMPT, 61, NEVER))
    assert summary.forwards == 1 + 60 // 5
    assert summary.accept_length == 5
    assert summary.acceptance_by_position == [1, 1, 1, 1]
    assert rounds[1].accepted == [True] * 4 + [False]


def test_acceptance_by_position_counts_prefixes(make_worker, plain):
    # Positions 0, 3, 6, .. are wrong: of a chain after position n the tokens up to the next
    # multiple of 3 are kept. The first token is at position 6, so the chain begins at 7.
    worker, _ = make_worker(Liar(plain, DRAFTERS["every_third_wrong"]), k=3)
    _, summary = run(worker.generate(PROMPT, 31, NEVER))
    assert summary.tokens == plain[:31]
    assert summary.acceptance_by_position == [1, 1, 0]
    assert summary.accept_length == 3


@pytest.mark.parametrize("wrong", DRAFTERS.values(), ids=DRAFTERS.keys())
def test_rows_are_the_states_of_one_pass_over_the_text(make_worker, model, plain, wrong):
    worker, server = make_worker(Liar(plain, wrong), k=3)
    run(worker.generate(PROMPT, 40, NEVER))
    (session,) = server.closed
    text = PROMPT + plain[:40]
    assert session.tokens == text[1:], "of each row the token that follows; then the final ones"
    with torch.inference_mode():
        states = model(torch.tensor([text]), output_hidden_states=True).hidden_states
    expected = torch.cat([states[b][0] for b in (1, 2, 3)], dim=-1).numpy()
    sent = session.array()
    # bf16 keeps 8 bits of a value; a state of the wrong place or past is off by far more.
    difference = np.abs(sent - expected[: len(sent)])
    assert np.all(difference <= 0.01 * np.abs(expected[: len(sent)]) + 1e-4)
    assert len(sent) >= 40


def test_the_cache_after_a_rejection_is_that_of_plain_decoding(model, plain):
    drafted, alone = CachedTarget(model, ()), CachedTarget(model, ())
    drafted.forward(PROMPT, 1)
    drafted.forward([plain[0], 63, 62, 61], 4)
    drafted.keep(len(PROMPT) + 1)
    alone.forward(PROMPT, 1)
    alone.forward([plain[0]], 1)
    assert drafted.length == alone.length
    for ours, theirs in zip(drafted._cache.layers, alone._cache.layers):
        assert torch.allclose(ours.keys, theirs.keys, atol=1e-5)
        assert torch.allclose(ours.values, theirs.values, atol=1e-5)
    next_of = [t.forward([plain[1]], 1)[0].argmax().item() for t in (drafted, alone)]
    assert next_of == [plain[2]] * 2


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("wrong", DRAFTERS.values(), ids=DRAFTERS.keys())
def test_an_end_token_ends_the_text_where_plain_decoding_ends(make_worker, plain, wrong, k):
    # The end falls onto other places of the draft for every k: first, middle, last, bonus.
    for eos in (plain[0], plain[7], plain[10], plain[13]):
        worker, _ = make_worker(Liar(plain, wrong), k)
        _, summary = run(worker.generate(PROMPT, 60, {eos}))
        assert summary.tokens == plain[: plain.index(eos) + 1]
        if summary.record is not None:
            assert summary.record.accepted_draft_tokens == summary.accepted
            assert summary.record.spec_steps == summary.rounds


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 11])
def test_max_new_tokens_is_kept_to_the_token(make_worker, plain, count):
    worker, server = make_worker(Liar(plain, DRAFTERS["always_right"]), k=4)
    _, summary = run(worker.generate(PROMPT, count, NEVER))
    assert summary.tokens == plain[:count]
    assert all(r.k <= count - 2 for r in server.requests), "a token more than the text has room for"


def test_a_drafter_that_proposes_more_than_asked_changes_nothing(make_worker, plain):
    liar = Liar(plain, DRAFTERS["always_right"])
    worker, _ = make_worker(lambda tokens, k: liar(tokens, k + 3), k=2)
    _, summary = run(worker.generate(PROMPT, 20, NEVER))
    assert summary.tokens == plain[:20]


def test_leaving_early_closes_the_session(make_worker, plain):
    worker, server = make_worker(Liar(plain, DRAFTERS["always_right"]))
    generation = worker.generate(PROMPT, 60, NEVER)
    for number, _ in enumerate(generation):
        if number == 2:
            break
    generation.close()
    assert not server.sessions
    assert generation.summary.record.spec_steps == 2


def test_plain_generation_asks_nobody_and_captures_nothing(make_worker, model, plain, monkeypatch):
    worker, server = make_worker(Liar(plain, DRAFTERS["always_right"]))
    asked, forward = [], model.forward

    def watched(*args, output_hidden_states=None, logits_to_keep=None, **kwargs):
        asked.append(output_hidden_states)
        return forward(
            *args,
            output_hidden_states=output_hidden_states,
            logits_to_keep=logits_to_keep,
            **kwargs,
        )

    monkeypatch.setattr(model, "forward", watched)
    rounds, summary = run(worker.generate_plain(PROMPT, 20, NEVER))
    assert summary.tokens == plain[:20]
    assert asked == [False] * 20
    assert (summary.forwards, summary.rounds) == (20, 0)
    assert not any(any(r.accepted) for r in rounds)
    assert not server.requests


def test_a_target_that_fails_midway_leaves_no_session_and_no_false_tokens(
    make_worker, model, plain, monkeypatch
):
    worker, server = make_worker(Liar(plain, DRAFTERS["always_right"]), k=2)
    generation = worker.generate(PROMPT, 60, NEVER)
    with pytest.raises(RuntimeError, match="out of memory"):
        for number, _ in enumerate(generation):
            if number == 2:
                monkeypatch.setattr(model, "forward", raise_out_of_memory)
    assert not server.sessions
    assert server.final_tokens == [[]]


def raise_out_of_memory(*args, logits_to_keep=None, **kwargs):
    raise RuntimeError("out of memory")


def test_a_sliding_window_target_keeps_what_a_rejection_needs(make_worker):
    target = (
        transformers.MistralForCausalLM(
            transformers.MistralConfig(
                vocab_size=VOCAB,
                hidden_size=16,
                intermediate_size=32,
                num_hidden_layers=4,
                num_attention_heads=4,
                num_key_value_heads=2,
                sliding_window=8,
                initializer_range=0.6,
            )
        )
        .float()
        .eval()
    )
    with torch.inference_mode():
        text = target.generate(
            torch.tensor([PROMPT]),
            max_new_tokens=40,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )[0, len(PROMPT) :].tolist()
    worker, _ = make_worker(Liar(text, DRAFTERS["irregular"]), target=target)
    _, summary = run(worker.generate(PROMPT, 40, NEVER))
    assert summary.tokens == text


@pytest.mark.parametrize(
    "captures, message",
    [
        (aerie_draft.captures_at([2, 4]), "before the final norm"),
        (aerie_draft.captures_at([9]), "leaves a target"),
    ],
)
def test_captures_that_the_model_cannot_give_are_refused_at_start(unary, model, captures, message):
    with pytest.raises(ValueError, match=message):
        TargetWorker(model, None, unary, 2, captures=captures)


def test_the_last_hidden_state_is_the_final_norms_output(model):
    target = CachedTarget(model, (aerie_draft.FINAL_NORM,))
    logits, rows = target.forward(PROMPT, len(PROMPT))
    again = torch.from_numpy(rows) @ model.lm_head.weight.T
    assert torch.allclose(again, logits, atol=1e-3)


def test_a_k_above_the_servers_limit_is_refused(make_worker, plain):
    with pytest.raises(ValueError, match="k is 9; expected at most 8"):
        make_worker(Liar(plain, DRAFTERS["always_right"]), k=9)
    with pytest.raises(ValueError, match="k is 0"):
        make_worker(Liar(plain, DRAFTERS["always_right"]), k=0)
