"""The command: what it prints, writes and ends with, and how it refuses wrong use."""

import json
import pathlib
import subprocess
import sys

import fake_target
import pytest
from aerie_draft.conformance.cli import CONFORMANT, NOT_CONFORMANT, USAGE, main
from aerie_draft.conformance.rules import ALL_RULES, WORKER_RULES
from aerie_draft.conformance.scenarios import SCENARIOS

HERE = pathlib.Path(__file__).resolve().parent
RAW_WORKER = [sys.executable, str(HERE / "raw_worker.py"), "--tokens", "40"]
SIZES = [
    "--num-layers",
    str(fake_target.LAYERS),
    "--hidden-size",
    str(fake_target.HIDDEN),
    "--vocab-size",
    str(fake_target.VOCAB),
]
TARGET = [*SIZES, "--boundaries", ",".join(map(str, fake_target.BOUNDARIES))]


@pytest.fixture
def conformance(capsys):
    """conformance(words...) -> exit status, standard output, standard error. In this process:
    starting Python takes seconds on a busy machine."""

    def run(*words):
        try:
            status = main([str(word) for word in words])
        except SystemExit as end:
            status = end.code
        return (status, *capsys.readouterr())

    return run


def test_a_right_worker_process_is_conformant_and_the_report_says_so(conformance, tmp_path):
    texts = tmp_path / "texts.json"
    texts.write_text(json.dumps([fake_target.text(40)]))
    report = tmp_path / "report.json"
    status, said, trouble = conformance(
        "worker",
        *TARGET,
        "--scenario",
        "drafts",
        "--texts",
        texts,
        "--same-output",
        "--json",
        report,
        "--",
        *RAW_WORKER,
    )
    assert status == CONFORMANT, said + trouble
    assert ": conformant; " in said
    assert "drafts: " in trouble, "what is being tried"
    told = json.loads(report.read_text())
    assert (told["schema"], told["kind"], told["conformant"]) == (1, "worker", True)
    results = {rule["rule"]: rule["result"] for rule in told["rules"]}
    assert set(results) == set(WORKER_RULES)
    assert results["W-PAIRING"] == results["W-VERIFY"] == "pass"
    assert results["W-SEQ-RETRY"] == "skip"
    for rule in told["rules"]:
        assert bool(rule["why_skipped"]) == (rule["result"] == "skip"), rule
        assert (rule["violations"] > 0) == bool(rule["findings"]) == (rule["result"] == "fail")


def test_a_wrong_worker_process_is_not_and_the_address_can_be_an_argument(conformance, tmp_path):
    report = tmp_path / "report.json"
    command = [*RAW_WORKER, "--bug", "rejected_rows_kept", "--address", "{address}"]
    status, said, trouble = conformance(
        "worker",
        *TARGET,
        "--rule",
        "W-REJECTED-DROPPED",
        "--json",
        report,
        "--quiet",
        "--",
        *command,
    )
    assert status == NOT_CONFORMANT, said + trouble
    assert trouble == ""
    (rule,) = json.loads(report.read_text())["rules"]
    assert (rule["rule"], rule["result"]) == ("W-REJECTED-DROPPED", "fail")
    assert set(rule["findings"][0]) == {"where", "seen", "expected", "remedy"}
    assert rule["findings"][0]["where"] == "drafts"


def test_a_skipped_rule_fails_a_run_that_wants_all(conformance):
    words = ("worker", *TARGET, "--rule", "W-SEQ-RETRY", "--scenario", "plain", "--fail-on-skip")
    status, said, _ = conformance(*words, "--", *RAW_WORKER)
    assert status == NOT_CONFORMANT
    assert "SKIP  W-SEQ-RETRY" in said


def test_a_person_may_run_the_worker_by_hand():
    """The worker here reads the address from what the tool says, as a person would."""
    import raw_worker

    words = ("worker", *TARGET, "--scenario", "drafts", "--manual", "--rule", "W-BASE")
    with subprocess.Popen(
        [sys.executable, "-m", "aerie_draft.conformance", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as tool:
        for line in tool.stderr:
            if "press Enter" not in line:
                continue
            worker = raw_worker.Worker(line.split("drafts from ")[1].split(",")[0])
            worker.generate(40)
            worker.close()
            tool.stdin.write("\n")
            tool.stdin.flush()
        assert "PASS  W-BASE" in tool.stdout.read()
    assert tool.returncode == CONFORMANT


def test_a_worker_that_does_not_even_decode_is_wrong_use(conformance):
    status, _, trouble = conformance("worker", *TARGET, "--", "sh", "-c", "echo no gpu >&2; exit 1")
    assert status == USAGE
    assert "ended with 1" in trouble and "no gpu" in trouble


def test_a_worker_that_hangs_is_killed_and_said_so(conformance):
    status, _, trouble = conformance("worker", *TARGET, "--timeout", "0.2", "--", "sleep", "1000")
    assert status == USAGE
    assert "had not ended after 0.2 s" in trouble


def test_all_rules_are_listed(conformance):
    status, said, _ = conformance("--list")
    assert status == CONFORMANT
    assert [line.split()[0] for line in said.splitlines()] == list(ALL_RULES)


@pytest.mark.parametrize(
    "words, message",
    [
        ((), "no mode was given"),
        (("server",), "ADDRESS"),
        (("server", "127.0.0.1:1"), "does not tell what it is"),
        (("server", "127.0.0.1:1", "--rule", "W-BASE"), "invalid choice"),
        (("worker", "--", "true"), "--boundaries"),
        (("worker", *TARGET), "no COMMAND was given"),
        (("worker", *TARGET, "--manual", "--", "true"), "both --manual and a COMMAND"),
        (("worker", *SIZES, "--boundaries", "1,x", "--", "true"), "'x' is no capture"),
        (
            ("worker", "--boundaries", "1", "--", "true"),
            "--num-layers, --hidden-size, --vocab-size",
        ),
        (("worker", *TARGET, "--target", "/", "--", "true"), "expected the one or the other"),
        (("worker", *TARGET, "--patience", "0", "--", "true"), "--patience is 0"),
        (("worker", *TARGET, "--listen", "here", "--", "true"), "--listen is 'here'"),
        (
            ("worker", *TARGET, "--same-output", "--expect-output", __file__, "--", "true"),
            "were both given",
        ),
        (("worker", *TARGET, "--texts", __file__, "--", "true"), "--texts"),
    ],
)
def test_wrong_use_is_refused_by_name(conformance, words, message):
    status, said, trouble = conformance(*words)
    assert status == USAGE, said + trouble
    assert message in trouble


def test_the_page_names_every_rule_and_scenario():
    page = (HERE.parents[1] / "docs/worker-contract.md").read_text()
    missing = [name for name in ALL_RULES if f"`{name}`" not in page]
    missing += [s.name for s in SCENARIOS if f"| `{s.name}` |" not in page]
    assert not missing
