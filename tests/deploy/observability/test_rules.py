"""Rules and alerts as files: promtool accepts them, every alert is tested, explained and links to its runbook."""

import os
import re
import shutil
import subprocess

import pytest
import yaml

import deploy_files
from deploy_files import PROMETHEUS, ROOT, RULE_FILES

TESTS = sorted((ROOT / "tests/deploy/prometheus").glob("*_test.yml"))
ALERTS = deploy_files.alert_rules()


def promtool(*arguments):
    if shutil.which("promtool") is None:
        assert os.environ.get("AERIE_REQUIRE_PROMTOOL") != "1", "promtool is not installed; Debian's prometheus has it"
        pytest.skip("promtool is not installed; Debian's package prometheus has it")
    done = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_promtool_accepts_the_configuration():
    status, said = promtool("check", "config", "--lint-fatal", PROMETHEUS / "prometheus.yml")
    assert status == 0 and f"{len(RULE_FILES)} rule files found" in said, said


@pytest.mark.parametrize("path", RULE_FILES, ids=lambda path: path.name)
def test_promtool_accepts_the_rules(path):
    status, said = promtool("check", "rules", "--lint=all", "--lint-fatal", path)
    assert status == 0, said


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name)
def test_promtool_sees_the_rules_do_what_their_tests_say(path):
    status, said = promtool("test", "rules", path)
    assert status == 0, said


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_is_seen_silent_then_firing_then_resolved(name):
    """In its unit tests, in that order: what never fires and what never ends are both no alert."""
    histories = []
    for path in TESTS:
        for test in yaml.safe_load(path.read_text())["tests"]:
            cases = [case for case in test.get("alert_rule_test", []) if case["alertname"] == name]
            histories.append([bool(case["exp_alerts"]) for case in cases])
    assert any(re.fullmatch("s+f+s+", "".join("f" if firing else "s" for firing in history)) for history in histories)


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_says_how_bad_it_is_and_what_to_do(name):
    rule = ALERTS[name]
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert "for" in rule
    notes = rule["annotations"]
    assert set(notes) == {"summary", "description", "runbook_url"}
    assert re.search(r"\{\{ ?\$value|for (two|five) minutes", notes["description"]), "it names no number"
    assert notes["runbook_url"] == f"docs/runbooks.md#{name.lower()}"


def test_the_runbook_has_a_chapter_for_every_alert_and_for_no_other():
    text = (ROOT / "docs/runbooks.md").read_text()
    chapters = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    found = {chapter.split("\n", 1)[0].strip(): chapter for chapter in chapters}
    assert {name for name in found if name.startswith("Aerie")} == set(ALERTS)
    for name in ALERTS:
        for part in ("**What it means.**", "**What to type.**", "**Mended when**"):
            assert part in found[name], f"{name} lacks {part}"
        assert "```" in found[name], f"{name} gives nothing to type"


def test_every_metric_that_rules_ask_for_is_exported_or_recorded():
    recorded = {name for name, _ in deploy_files.recording_rules()}
    expressions = [expr for _, expr in deploy_files.recording_rules()] + [rule["expr"] for rule in ALERTS.values()]
    for expr in expressions:
        unknown = deploy_files.metrics_in(expr) - deploy_files.server_metrics()
        assert not unknown, f"the server exports no {', '.join(sorted(unknown))}: {expr}"
        assert set(deploy_files.RECORDED.findall(expr)) <= recorded, expr


@pytest.mark.parametrize("name, expr", deploy_files.recording_rules(), ids=lambda value: value.split("(")[0])
def test_a_recorded_ratio_has_no_value_without_traffic(name, expr):
    if " / " in expr:
        assert "> 0)" in expr.split(" / ", 1)[1], expr
    if "histogram_quantile" in expr:
        assert expr.endswith(">= 0"), expr
