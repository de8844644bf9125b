"""The dashboards as files: equal to their source, true to Grafana's schema, and asking for what the server exports."""

import copy
import re
import subprocess
import sys

import pytest
import yaml

import deploy_files
from deploy_files import GRAFANA, ROOT
from grafana_schema import complaints

DASHBOARDS = deploy_files.dashboards()
VARIABLES = {"datasource", "job", "drafter", "target", "instance"}
EXPRESSIONS = deploy_files.dashboard_expressions()
# Exported by nobody's mistake and shown by no panel, each with the reason.
NOT_SHOWN = {
    "grpc_server_started_total": "handled RPCs are shown; the two differ by what is running",
    "grpc_server_msg_received_total": "bytes say more; messages of a stream are its calls",
    "grpc_server_msg_sent_total": "see msg_received",
    "aerie_traceparents_ignored_total": "a matter of whoever sets up tracing, not of operation",
    "aerie_target_sessions": "there only with --target-quota; docs/metrics.md says what to ask",
    "aerie_target_rows_total": "see aerie_target_sessions",
    "aerie_target_refused_total": "refused calls are shown by reason; which target's, see aerie_target_sessions",
    "process_virtual_memory_bytes": "says nothing of a process that maps its weights",
}
# A query over one of these counters means something only as a rate.
COUNTER = re.compile(r"\b[a-z_]+_(?:total|bucket|sum|count)\b(?=[{\s\[)])")


def every_panel():
    return [pytest.param(panel, id=f"{uid}: {panel['title']}")
            for uid, dashboard in DASHBOARDS.items() for panel in deploy_files.panels(dashboard)]


def test_there_are_three_dashboards_with_fixed_uids():
    assert {uid: dashboard["title"] for uid, dashboard in DASHBOARDS.items()} == {
        "aerie-overview": "Aerie overview", "aerie-requests": "Aerie requests", "aerie-wiring": "Aerie wiring"}
    assert all(dashboard["uid"] == uid for uid, dashboard in DASHBOARDS.items())


def test_the_json_is_what_the_source_says():
    check = subprocess.run([sys.executable, GRAFANA / "generate", "--check"], capture_output=True, text=True)
    assert check.returncode == 0, check.stderr


def test_a_changed_file_and_a_stranger_are_told(tmp_path):
    run = [sys.executable, GRAFANA / "generate", "--output", tmp_path]
    assert subprocess.run(run, capture_output=True).returncode == 0
    changed = tmp_path / "aerie-wiring.json"
    changed.write_text(changed.read_text().replace("Aerie wiring", "My wiring", 1))
    (tmp_path / "mine.json").write_text("{}")
    check = subprocess.run([*run, "--check"], capture_output=True, text=True)
    assert check.returncode == 1
    assert "aerie-wiring.json differs from its source" in check.stderr
    assert "mine.json: no dashboard in panels/ has this uid" in check.stderr
    assert "aerie-overview.json" not in check.stderr.replace("expected aerie-overview.json", "")


@pytest.mark.parametrize("uid", DASHBOARDS)
def test_a_dashboard_fits_the_schema_of_grafana(uid):
    assert complaints(DASHBOARDS[uid]) == []


@pytest.mark.parametrize("spoil, complaint", [
    (lambda d: d["panels"][1].update(tooltip="x"), "panels[1].tooltip: no such field"),
    (lambda d: d["panels"][1]["options"].update(graphMood="area"), "panels[1].options.graphMood: no such field"),
    (lambda d: d["panels"][1]["options"].update(graphMode="aera"), "'aera'; expected one of"),
    (lambda d: d["panels"][1]["gridPos"].update(w="3"), "grid_pos.w: '3'; expected int"),
    (lambda d: d["panels"][1]["targets"][0].update(instant="no"), "instant: 'no'; expected bool"),
    (lambda d: d["templating"]["list"][1].update(hide=7), "hide: 7; expected one of"),
    (lambda d: d["links"][0].update(type="url"), "expected one of"),
    (lambda d: d.update(schemaVersion="41"), "schema_version: '41'; expected int"),
], ids=["field of a panel", "field of options", "word", "size", "boolean", "number of a list", "link", "version"])
def test_the_schema_check_sees(spoil, complaint):
    spoilt = copy.deepcopy(DASHBOARDS["aerie-overview"])
    spoil(spoilt)
    assert any(complaint in line for line in complaints(spoilt)), complaints(spoilt)


@pytest.mark.parametrize("uid", DASHBOARDS)
def test_no_data_source_is_hard_wired(uid):
    dashboard = DASHBOARDS[uid]
    sources = [panel["datasource"] for panel in deploy_files.panels(dashboard)]
    sources += [target["datasource"] for panel in deploy_files.panels(dashboard) for target in panel["targets"]]
    sources += [annotation["datasource"] for annotation in dashboard["annotations"]["list"]]
    sources += [variable["datasource"] for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
    assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)


@pytest.mark.parametrize("uid", DASHBOARDS)
def test_variables_are_declared_and_the_first_is_the_data_source(uid):
    variables = DASHBOARDS[uid]["templating"]["list"]
    assert [variable["name"] for variable in variables] == ["datasource", "job", "drafter", "target", "instance"]
    used = {name for _, _, _, expr in EXPRESSIONS for name in re.findall(r"\$\{?([a-z_]+)", expr)}
    assert used - {"__rate_interval"} <= VARIABLES


@pytest.mark.parametrize("uid", DASHBOARDS)
def test_panels_lie_beside_each_other_and_have_numbers_of_their_own(uid):
    panels = DASHBOARDS[uid]["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    titles = [panel["title"] for panel in deploy_files.panels(DASHBOARDS[uid])]
    assert len(set(titles)) == len(titles)
    taken = {}
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        for cell in ((x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])):
            assert cell not in taken, f"{panel['title']} lies over {taken[cell]}"
            taken[cell] = panel["title"]


@pytest.mark.parametrize("panel", every_panel())
def test_a_panel_says_what_it_shows_and_what_nothing_means(panel):
    assert len(panel["description"]) > 25 and panel["description"].endswith(".")
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["unit"]
    assert defaults["noValue"] == "no traffic"
    if panel["type"] not in ("heatmap", "table"):
        nothing = [mapping for mapping in defaults["mappings"] if mapping["type"] == "special"]
        assert [mapping["options"]["match"] for mapping in nothing] == ["null+nan"]
        assert nothing[0]["options"]["result"]["text"] == "no traffic"


@pytest.mark.parametrize("panel", every_panel())
def test_counters_are_asked_for_as_rates_over_grafanas_interval(panel):
    for target in panel["targets"]:
        bare = re.sub(r"\{[^}]*\}", "{}", deploy_files.RECORDED.sub("", target["expr"]))
        assert re.findall(r"\[([^]]+)\]", bare) == ["$__rate_interval"] * bare.count("["), target["expr"]
        counters = len(COUNTER.findall(bare))
        assert counters == len(re.findall(r"\brate\([a-z_]+(?:\{\})?\[", bare)), target["expr"]


@pytest.mark.parametrize("panel", every_panel())
def test_a_denominator_is_guarded(panel):
    for target in panel["targets"]:
        expr = re.sub(r'"[^"]*"', '""', target["expr"])
        for denominator in expr.split(" / ")[1:]:
            # The week before is a recorded ratio, at least 1 where it is there at all.
            assert re.search(r"> 0\)", denominator) or "offset 7d" in denominator, target["expr"]


def test_every_metric_that_is_asked_for_is_exported_or_recorded():
    recorded = {name for name, _ in deploy_files.recording_rules()}
    for uid, title, letter, expr in EXPRESSIONS:
        unknown = deploy_files.metrics_in(expr) - deploy_files.server_metrics()
        assert not unknown, f"{uid}, {title}, {letter}: the server exports no {', '.join(sorted(unknown))}"
        assert set(deploy_files.RECORDED.findall(expr)) <= recorded, f"{uid}, {title}, {letter}"


def test_every_metric_that_is_exported_is_shown():
    shown = {name for *_, expr in EXPRESSIONS for name in deploy_files.metrics_in(expr)}
    assert deploy_files.server_metrics() - shown - set(NOT_SHOWN) == set()
    assert not shown & set(NOT_SHOWN)


def test_what_grafana_is_given_at_its_start_fits_the_rest():
    provider = yaml.safe_load((GRAFANA / "provisioning/dashboards/aerie.yml").read_text())["providers"]
    assert [p["type"] for p in provider] == ["file"]
    source = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())["datasources"]
    assert [s["type"] for s in source] == ["prometheus"]
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    assert source[0]["jsonData"]["timeInterval"] == config["global"]["scrape_interval"]
