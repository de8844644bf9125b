"""Debian's Prometheus as a process, with the shipped configuration made quicker, and its HTTP API."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest
import yaml
from server_process import PATIENCE, wait_until

import deploy_files

SCRAPE_INTERVAL = 1  # seconds; also its time limit, and that between evaluations of the rules


def require_prometheus():
    if shutil.which("prometheus") is None or shutil.which("promtool") is None:
        assert os.environ.get("AERIE_REQUIRE_PROMTOOL") != "1", "prometheus is not installed; it is Debian's package"
        pytest.skip("prometheus is not installed; it is Debian's package of that name")


def milliseconds(seconds):
    return round(float(seconds) * 1000)


class Prometheus:
    """A running Prometheus; use as a context manager.

    `targets` are scraped as job aerie. `change_rules` gets the text of a shipped rule file and gives the one to be
    used. `backfill` is text in OpenMetrics format that is in the database from the start.
    """

    def __init__(self, folder, targets, change_rules=lambda text: text, backfill=None):
        require_prometheus()
        self.folder = pathlib.Path(folder)
        config = yaml.safe_load((deploy_files.PROMETHEUS / "prometheus.yml").read_text())
        config["global"] |= dict.fromkeys(("scrape_interval", "scrape_timeout", "evaluation_interval"),
                                          f"{SCRAPE_INTERVAL}s")
        config["scrape_configs"][0]["static_configs"] = [{"targets": list(targets)}]
        (self.folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        for path in deploy_files.RULE_FILES:
            (self.folder / path.name).write_text(change_rules(path.read_text()))
        if backfill:
            (self.folder / "before.om").write_text(backfill)
            subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", self.folder / "before.om",
                            self.folder / "data"], check=True, capture_output=True)
        self.log_path = self.folder / "prometheus.log"
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", "--config.file", str(self.folder / "prometheus.yml"), "--storage.tsdb.path",
                 str(self.folder / "data"), "--web.listen-address", "127.0.0.1:0"],
                stderr=log, env={**os.environ, "GOMAXPROCS": "1"})
        try:
            # Port 0: the log is the only place that tells which one it became.
            self.url = "http://" + wait_until(self._address, "Prometheus to listen")
            wait_until(lambda: "ready to receive web requests" in self.log(), "Prometheus to be ready")
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def log(self):
        return self.log_path.read_text()

    def _address(self):
        assert self.process.poll() is None, self.log()
        found = re.search(r'msg="Listening on" address=(\S+)', self.log())
        return found and found.group(1)

    def get(self, path, **parameters):
        """The answer's data; an assertion with Prometheus' own words when it refuses."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def query(self, expr, at=None):
        """{labels without the name, as a frozenset of pairs: value}. Empty: no series."""
        data = self.get("query", query=expr, time=f"{time.time() if at is None else at:.3f}")
        if data["resultType"] == "scalar":
            return {frozenset(): float(data["result"][1])}
        return {frozenset((name, value) for name, value in sample["metric"].items() if name != "__name__"):
                float(sample["value"][1]) for sample in data["result"]}

    def sample_times(self, selector, window, at):
        """Times in milliseconds of the samples of the only series that `selector` finds."""
        (found,) = self.get("query", query=f"{selector}[{window}]", time=f"{at:.3f}")["result"]
        return [milliseconds(moment) for moment, _ in found["values"]]

    def alert_state(self, name, instance=None):
        """inactive, pending or firing: the worst over all its series, or over those of one instance."""
        states = {alert["state"] for alert in self.get("alerts")["alerts"]
                  if alert["labels"]["alertname"] == name and instance in (None, alert["labels"].get("instance"))}
        return "firing" if "firing" in states else "pending" if "pending" in states else "inactive"
