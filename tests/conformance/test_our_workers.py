"""Our own workers keep every rule: the client library's sequence, the Hugging Face one, and C++."""

import os
import pathlib
import traceback

import aerie_draft
import pytest
import sequence_worker
from aerie_draft.conformance.command import run_command
from aerie_draft.conformance.scenarios import SCENARIOS
from aerie_draft.conformance.shape import DrafterShape
from aerie_draft.conformance.worker_suite import WorkerRun
from conftest import check

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRANSPORTS = ("unary", "stream")
QUICK = frozenset(scenario.name for scenario in SCENARIOS) - {"slow"}
LONG = os.environ.get("AERIE_CONFORMANCE_LONG") == "1"
# Nothing repeats a call over a stream that broke.
UNARY_ONLY = {"W-SEQ-RETRY"}


def expect_all_kept(report, transport):
    assert not report.failed(), report.text()
    assert report.skipped() <= (UNARY_ONLY if transport == "stream" else set()), report.text()


def survived(decode):
    """A run of `decode`, whose exceptions are the worker's end."""
    try:
        return WorkerRun(0, str(decode()))
    except Exception:
        return WorkerRun(1, trouble=traceback.format_exc(limit=3))


SEQUENCES = {
    "chains": {},
    "trees": {"options": aerie_draft.SessionOptions(tree=aerie_draft.TreeShape(3, 2, 8)), "k": 8},
    "reopens": {"on_loss": aerie_draft.OnLoss.REOPEN, "keep_rows": 8},
}


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("how", SEQUENCES)
def test_drafted_sequences_keep_every_rule(how, transport, whole_text):
    def run(address, scenario):
        return survived(
            lambda: sequence_worker.generate(address, 60, transport=transport, **SEQUENCES[how])
        )

    if how == "chains":
        expect_all_kept(check(run, texts=(whole_text,)), transport)
        return
    # Waiting for an answer in vain is the same for all of them.
    report = check(run, texts=(whole_text,), scenarios=QUICK)
    assert not report.failed(), report.text()
    assert not report.skipped() & {"W-RESEND-FROM", "W-SESSION-LOST", "W-VERIFY"}, report.text()


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("tree", [False, True], ids=["chains", "trees"])
def test_the_transformers_worker_keeps_every_rule(tree, transport):
    if not LONG and tree == (transport == "unary"):
        pytest.skip("AERIE_CONFORMANCE_LONG is not 1: chains go unary and trees on a stream")
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    import hugging_face_worker

    torch.set_num_threads(1)
    model = hugging_face_worker.tiny_llama()

    def run(address, scenario):
        return survived(
            lambda: hugging_face_worker.generate(model, address, 60, tree=tree, transport=transport)
        )

    # States of random layers hardly carry their token: pairing is judged by the text.
    text = hugging_face_worker.plain_text(model, 60)
    report = check(run, hugging_face_worker.shape_of(model), texts=(text,), row_tolerance=0.02)
    expect_all_kept(report, transport)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_cpp_worker_keeps_every_rule(transport, whole_text):
    program = os.environ.get("AERIE_CONFORMANCE_WORKER")
    if not program:
        pytest.skip("AERIE_CONFORMANCE_WORKER is not set: no C++ client was built")
    run = run_command([program, "--address", "{address}", "--transport", transport], timeout=120)
    shape = DrafterShape(6, 8, 61, aerie_draft.captures_at((1, 4)))
    expect_all_kept(check(run, shape), transport)


@pytest.mark.skipif(not LONG, reason="AERIE_CONFORMANCE_LONG is not 1: takes minutes")
@pytest.mark.parametrize("tree", [False, True], ids=["chains", "trees"])
def test_the_transformers_worker_keeps_every_rule_with_a_real_target(tree):
    """Pairing is judged by the states alone, which needs those of a trained target."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    import hugging_face_worker

    torch.set_num_threads(1)
    target = os.environ["AERIE_TARGET"]
    model = transformers.AutoModelForCausalLM.from_pretrained(target, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(target)
    prompt = tokenizer(
        "Once upon a time a king and a queen lived in a castle by the sea, and the king"
        " and the queen had a daughter. The daughter"
    )["input_ids"]

    def run(address, scenario):
        return survived(
            lambda: hugging_face_worker.generate(
                model, address, 80, tree=tree, transport="unary", prompt=prompt, timeout=5.0
            )
        )

    shape = hugging_face_worker.shape_of(model, (2, 15, 27))
    report = check(run, shape)
    print(report.text())
    expect_all_kept(report, "unary")
