"""Every metric that a manifest or a page of the handbook names is one that the server exports."""

import os
import re
import shutil
import subprocess

import pytest
import yaml

from conftest import KUBERNETES, ROOT

RULES = KUBERNETES / "overlays/autoscaled/adapter_rules.yaml"
PAGES = ["operations.md", "troubleshooting.md", "upgrading.md", "scale-out.md"]


def names_in(text, of_ours=frozenset()):
    """Names of series in queries and in back quotes, without the suffixes that histograms add."""
    found = set()
    for name in re.findall(r"\b(aerie_[a-z0-9_]+|grpc_server_[a-z0-9_]+|process_[a-z]+_[a-z0-9_]+)\b", text):
        found.add(re.sub(r"_(bucket|sum|count)$", "", name))
    return found - of_ours


def test_the_autoscalers_metric_is_made_of_what_the_server_exports(metric_names):
    rules = yaml.safe_load(RULES.read_text())["rules"]
    made = {rule["name"]["as"] for rule in rules}
    for rule in rules:
        used = names_in(rule["seriesQuery"] + rule["metricsQuery"])
        assert used and used <= metric_names, used - metric_names
    autoscaler = yaml.safe_load((RULES.parent / "autoscaler.yaml").read_text())
    assert {metric["pods"]["metric"]["name"] for metric in autoscaler["spec"]["metrics"]} == made


def test_prometheus_reads_the_adapters_queries(tmp_path):
    if shutil.which("promtool") is None:
        assert os.environ.get("AERIE_REQUIRE_PROMTOOL") != "1", "promtool is not installed; Debian's prometheus has it"
        pytest.skip("promtool is not installed; Debian's package prometheus has it")
    rules = [{"record": rule["name"]["as"], "expr": rule["metricsQuery"].replace("<<.GroupBy>>", "pod").replace(
        "<<.LabelMatchers>>", 'namespace="aerie",pod=~"a|b"')} for rule in yaml.safe_load(RULES.read_text())["rules"]]
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "adapter", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    # A pod with sessions and no calls counts as 0, one whose calls wait 1 to 2 ms as 1.9 ms.
    series = [('aerie_sessions{namespace="aerie",pod="a"}', "1+0x10"), ('aerie_sessions{namespace="aerie",pod="b"}', "1+0x10")]
    for bound, total in (("0.001", "0+0x10"), ("0.002", "0+60x10"), ("+Inf", "0+60x10")):
        series.append((f'aerie_draft_duration_seconds_bucket{{namespace="aerie",pod="a",phase="queue",le="{bound}"}}', total))
    test = {"rule_files": [str(path)], "evaluation_interval": "1m", "tests": [{
        "interval": "1m", "input_series": [{"series": name, "values": values} for name, values in series],
        "promql_expr_test": [{"expr": f"round(1e6 * ({rules[0]['expr']}))", "eval_time": "10m", "exp_samples": [
            {"labels": '{pod="a"}', "value": 1900}, {"labels": '{pod="b"}', "value": 0}]}]}]}
    unit = tmp_path / "test.yaml"
    unit.write_text(yaml.safe_dump(test))
    done = subprocess.run(["promtool", "test", "rules", unit], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES)
def test_the_handbook_names_metrics_that_exist(page, metric_names):
    names = set(re.findall(r"[a-z_]+", "aerie_draft aerie_draft.capture aerie_session"))
    used = names_in((ROOT / "docs" / page).read_text(), names | {"aerie_queue_wait_p90_seconds"})
    assert used <= metric_names, used - metric_names
