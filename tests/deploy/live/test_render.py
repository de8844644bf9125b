"""deploy/grafana/render over a live Prometheus: every panel becomes a picture, and what has no traffic says so."""

import importlib.util
import os
import re
import socket
import subprocess
import sys
import time

import pytest
from aerie_draft import DraftClient
from server_process import ServerProcess, wait_until

import deploy_files
import expected_wiring
from prometheus_process import Prometheus
from replay import Replay
from wiring_exporter import WiringExporter

PNG = b"\x89PNG\r\n\x1a\n"
# Nothing of these happens in the load below.
IDLE = {"Accept length against a week ago", "RPC errors", "Failed calls", "k that was chosen",
        "Verification by the target", "Time since the last reload"}
# Of metrics that not every server has.
MAYBE_IDLE = {"Calls", "Request log"}
RENDER = [sys.executable, deploy_files.GRAFANA / "render"]


def require_matplotlib():
    if importlib.util.find_spec("matplotlib") is None:
        assert os.environ.get("AERIE_REQUIRE_PROMTOOL") != "1", "matplotlib is missing; tests/run installs it"
        pytest.skip("matplotlib is not installed; tests/run --label prometheus does it")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """{uid: folder} after some seconds of traffic."""
    require_matplotlib()
    guard_samples = expected_wiring.wiring_samples("drafter", "target", counted=True)
    with ServerProcess(tmp_path_factory.mktemp("server")) as server, WiringExporter(guard_samples) as guard, \
            Prometheus(tmp_path_factory.mktemp("prometheus"), [server.ports["metrics"], guard.address]) as prometheus, \
            DraftClient(server.address, timeout=60.0) as client:
        rounds = Replay(client).rounds()

        def seen():
            next(rounds)
            ended = prometheus.query("sum(rate(aerie_request_accept_length_tokens_count[1m]))")
            recorded = prometheus.query("aerie:accept_length:1h and on () aerie:draft_seconds_p99:5m")
            return recorded and max(ended.values(), default=0.0) > 0

        wait_until(seen, "Prometheus to have seen a request end")
        folder = tmp_path_factory.mktemp("pages")
        done = subprocess.run([*RENDER, "--prometheus", prometheus.url, "--range", "2m", "--scrape-interval", "15s",
                               "--end", str(time.time()), "--output", folder], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        yield {uid: folder / uid for uid in deploy_files.dashboards()}


def test_every_panel_of_every_dashboard_is_a_picture_with_its_words(pages):
    for uid, dashboard in deploy_files.dashboards().items():
        page = (pages[uid] / "index.html").read_text()
        pictures = re.findall(r'<img src="([^"]+)"', page)
        assert len(pictures) == len(deploy_files.panels(dashboard))
        for picture in pictures:
            assert (pages[uid] / picture).read_bytes().startswith(PNG)
        for panel in deploy_files.panels(dashboard):
            assert f">{panel['title']}</figcaption>" in page


def test_what_has_no_traffic_says_so_and_nothing_else_does(pages):
    quiet = {title for folder in pages.values()
             for title in re.findall(r'alt="([^"]+): no traffic"', (folder / "index.html").read_text())}
    assert quiet - MAYBE_IDLE == IDLE


def test_a_prometheus_that_does_not_answer_is_named(tmp_path):
    require_matplotlib()
    with socket.socket() as taken:
        # Bound and not listening: nobody else gets the port, and nobody answers on it.
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        done = subprocess.run([*RENDER, "--prometheus", url, "--output", tmp_path], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"{url} does not answer" in done.stderr
    assert "expected a Prometheus; name its address with --prometheus" in done.stderr
