"""Engine and server are compared before anything is loaded, and all that differs is told."""

import dataclasses
import sys
import types

import pytest
from aerie_draft import FINAL_NORM, DType, captures_at
from aerie_draft.values import DrafterInfo, Limits, ServerInfo
from aerie_draft.vllm.admission import AdmissionError, EngineFacts, check_engine, plan_for
from aerie_draft.vllm.settings import Settings

FACTS = EngineFacts(
    model="target",
    num_layers=30,
    hidden_size=576,
    vocab_size=49152,
    max_model_len=1024,
    dtype="float32",
    k=4,
    method="custom_class",
)
DRAFTER = DrafterInfo(
    name="head",
    version="abc",
    captures=captures_at([2, 15, 27]),
    target_num_layers=30,
    target_hidden_size=576,
    vocab_size=49152,
    draft_vocab_size=6144,
    hidden_size=576,
    weight_bytes=1,
    settings=(),
)


def info(drafter=DRAFTER, protocol=1, max_k=8, dtypes=tuple(DType)):
    limits = Limits(max_k, 1000, 1 << 20, 9, 4096, 600.0)
    return ServerInfo(protocol, "1.0", "", (drafter,), limits, dtypes, ())


def settings(**given):
    return Settings(address="h:1", **given)


def changed(**fields):
    return dataclasses.replace(DRAFTER, **fields)


def test_an_engine_that_fits_captures_what_the_drafter_wants_in_its_own_dtype():
    plan = plan_for(settings(), FACTS, info())
    assert plan.aux_boundaries == (2, 15, 27)
    assert plan.sources == (0, 1, 2)
    assert plan.manifest.captures == DRAFTER.captures
    assert plan.manifest.dtype is DType.FLOAT32
    assert (plan.k, plan.max_model_len) == (4, 1024)


def test_the_order_of_the_drafter_is_kept_though_the_engine_gives_states_in_ascending_order():
    plan = plan_for(settings(), FACTS, info(changed(captures=captures_at([27, 2, 15]))))
    assert plan.aux_boundaries == (2, 15, 27)
    assert plan.sources == (2, 0, 1)


def test_the_final_norm_is_the_engines_own_output():
    captures = (*captures_at([15]), FINAL_NORM, *captures_at([2]))
    plan = plan_for(settings(), FACTS, info(changed(captures=captures)))
    assert plan.aux_boundaries == (2, 15)
    assert plan.sources == (1, None, 0)


@pytest.mark.parametrize(
    "facts, server, words",
    [
        (dict(num_layers=32), info(), "decoder layers 32; expected 30"),
        (dict(hidden_size=512), info(), "hidden size 512; expected 576"),
        (dict(vocab_size=32000), info(), "vocabulary 32000; expected 49152"),
        (dict(k=9), info(), "num_speculative_tokens is 9; expected at most 8"),
        ({}, info(protocol=0), "speaks protocol 0; expected 1 or later; update"),
        ({}, info(dtypes=(DType.BFLOAT16,)), "hidden states are float32; expected one of bfloat16"),
        (dict(dtype="int8"), info(), "hidden states are int8; expected one of"),
        ({}, info(changed(captures=captures_at([2, 31]))), r"boundaries \[31\]; expected 0 .. 30"),
    ],
)
def test_what_does_not_fit_stops_the_start(facts, server, words):
    with pytest.raises(AdmissionError, match=words):
        plan_for(settings(), dataclasses.replace(FACTS, **facts), server)


def test_everything_that_does_not_fit_is_told_at_once():
    facts = dataclasses.replace(FACTS, num_layers=32, vocab_size=32000)
    with pytest.raises(AdmissionError) as refusal:
        plan_for(settings(boundaries=(2, 16, 29)), facts, info())
    for words in ("decoder layers 32", "vocabulary 32000", "boundaries is [2, 16, 29]"):
        assert words in str(refusal.value)


def test_the_heads_own_layer_ids_are_recognised_as_such():
    with pytest.raises(AdmissionError, match=r"is \[1, 14, 26\]; expected \[2, 15, 27\].*add 1"):
        plan_for(settings(boundaries=(1, 14, 26)), FACTS, info())
    with pytest.raises(AdmissionError, match=r"is \[2, 15, 28\]; expected .*leave the setting out"):
        plan_for(settings(boundaries=(2, 15, 28)), FACTS, info())


def test_a_drafter_that_the_server_does_not_hold_is_named():
    with pytest.raises(AdmissionError, match=r"drafter is 'other'.*\['head'\]"):
        plan_for(settings(drafter="other"), FACTS, info())


def test_without_a_server_the_given_boundaries_make_the_plan():
    plan = plan_for(settings(boundaries=(2, 15, 27), required=False), FACTS, None)
    assert plan == plan_for(settings(required=False), FACTS, info())


@pytest.mark.parametrize(
    "fact, words",
    [
        (dict(method="eagle3"), "method is 'eagle3'; expected 'custom_class'"),
        (dict(async_scheduling=True), "async scheduling is on; .*--no-async-scheduling"),
        (dict(v2_model_runner=True), "V2 model runner.*VLLM_USE_V2_MODEL_RUNNER"),
        (dict(pipeline_parallel=2), "pipeline_parallel_size is 2; expected 1"),
        (dict(context_parallel=2), "context parallelism of 2"),
        (dict(micro_batches=True), "dual batch overlap"),
        (dict(prompt_embeds=True), "prompt embeddings"),
    ],
)
def test_an_engine_that_cannot_be_drafted_for_is_refused_by_name(fact, words):
    check_engine(FACTS)
    with pytest.raises(AdmissionError, match=words):
        check_engine(dataclasses.replace(FACTS, **fact))


def test_the_proposer_wants_one_of_our_workers_beside_it():
    from aerie_draft.vllm import Proposer

    fake = types.ModuleType("fake_vllm_workers")
    fake.Ours = type("Ours", (), {"drafts_through_aerie": True})
    fake.Theirs = type("Theirs", (), {})
    sys.modules[fake.__name__] = fake

    def config(name):
        return types.SimpleNamespace(parallel_config=types.SimpleNamespace(worker_cls=name))

    Proposer(config("fake_vllm_workers.Ours")).load_model(None)
    for name in ("fake_vllm_workers.Theirs", "fake_vllm_workers.Nobody", "auto"):
        with pytest.raises(ValueError, match=f"worker_cls is '{name}'; expected .*CPUWorker"):
            Proposer(config(name))


def test_importing_the_package_imports_nothing_of_vllm():
    import aerie_draft.vllm  # noqa: F401

    assert "vllm" not in sys.modules
    with pytest.raises(AttributeError, match="TPUWorker"):
        aerie_draft.vllm.TPUWorker  # noqa: B018
