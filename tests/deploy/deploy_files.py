"""What the tests of deploy/ share: where the files are, and what the words in them mean."""

import functools
import json
import pathlib
import re
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROMETHEUS = ROOT / "deploy/prometheus"
GRAFANA = ROOT / "deploy/grafana"
RULE_FILES = (PROMETHEUS / "aerie.rules.yml", PROMETHEUS / "aerie.alerts.yml")

sys.path.insert(0, str(GRAFANA))

METRIC = re.compile(r"\b(?:aerie|grpc_server|process)_[a-z0-9_]+\b")
RECORDED = re.compile(r"\baerie:[a-z0-9_:]+")
HISTOGRAM_PARTS = ("_bucket", "_sum", "_count")


@functools.cache
def server_metrics():
    """Every name that a server may export, from the place that knows them."""
    text = (ROOT / "server/metrics/metric_names.h").read_text()
    return set(re.findall(r'"((?:aerie|grpc_server|process)_[a-z0-9_]+)"', text))


def recording_rules():
    """[(name, expression)] in the order of the file."""
    return [(rule["record"], rule["expr"]) for rule in _rules(RULE_FILES[0])]


def alert_rules():
    """{name: rule}."""
    return {rule["alert"]: rule for rule in _rules(RULE_FILES[1])}


def _rules(path):
    return [rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]


def dashboards():
    """{uid: what the committed file says}."""
    return {path.stem: json.loads(path.read_text()) for path in sorted((GRAFANA / "dashboards").glob("*.json"))}


def panels(dashboard):
    """Those that show something: rows are headings."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def dashboard_expressions():
    """[(uid, panel's title, query's letter, expression)] of all panels of all dashboards."""
    return [(uid, panel["title"], target["refId"], target["expr"])
            for uid, dashboard in dashboards().items() for panel in panels(dashboard) for target in panel["targets"]]


def metrics_in(expr):
    """The names of the server's metrics in an expression, those of histograms without their parts."""
    known = server_metrics()
    names = set()
    for name in METRIC.findall(re.sub(r'"[^"]*"', "", RECORDED.sub("", expr))):
        for part in HISTOGRAM_PARTS:
            if name.endswith(part) and name.removesuffix(part) in known:
                name = name.removesuffix(part)
        names.add(name)
    return names
