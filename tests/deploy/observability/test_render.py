"""deploy/grafana/render as far as it needs neither matplotlib nor a Prometheus: numbers, times, names, and refusals."""

import argparse
import os
import subprocess
import sys

import pytest

from deploy_files import GRAFANA
from prometheus_api import Prometheus, duration, legend
from units import spell


@pytest.mark.parametrize("value, unit, text", [
    (float("nan"), "percentunit", "no traffic"),
    (None, "s", "no traffic"),
    (0.5, "percentunit", "50 %"),
    (0.12345, "percentunit", "12.3 %"),
    (0.00012, "s", "120 µs"),
    (0.0123, "s", "12.3 ms"),
    (90, "s", "1.5 min"),
    (7200, "s", "2 h"),
    (0, "s", "0 µs"),
    (24576, "bytes", "24 KiB"),
    (3 << 30, "bytes", "3 GiB"),
    (1500, "Bps", "1.5 kB/s"),
    (2, "reqps", "2 req/s"),
    (1.6789, "suffix: tokens", "1.68 tokens"),
    (43690, "none", "43690"),
    (float("inf"), "none", "∞"),
])
def test_numbers_are_spelt_for_people(value, unit, text):
    assert spell(value, unit) == text


@pytest.mark.parametrize("text, seconds", [("90s", 90), ("15m", 900), ("1.5h", 5400), ("7d", 604800)])
def test_times_are_read_with_their_unit(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "15", "m", "-5m", "0s", "1y"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="expected a number above 0 and one of s, m, h, d, w"):
        duration(text)


def test_variables_and_the_rate_interval_are_filled_in():
    asked = Prometheus("http://localhost/", {"job": "aerie", "instance": 'a"\\d'}, 3600, 15, 10_000)
    # The step is an hour over 240 points, as long as a scrape; four scrapes are longer than both.
    assert asked.filled('rate(x{job=~"$job",instance=~"$instance"}[$__rate_interval])') == (
        'rate(x{job=~"aerie",instance=~"a\\"\\\\d"}[60s])')


def test_a_series_is_called_by_its_labels():
    labels = {"__name__": "x", "reason": "lease", "job": "aerie"}
    assert legend("for {{reason}}", labels) == "for lease"
    assert legend("", labels) == "job=aerie, reason=lease"


def render(*arguments, **environment):
    return subprocess.run([sys.executable, GRAFANA / "render", *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, **environment})


def test_without_matplotlib_it_says_how_to_get_it(tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ImportError('No module named matplotlib')")
    done = render("--output", tmp_path / "out", PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert "No module named matplotlib; expected matplotlib; run: pip install -r" in done.stderr
    assert (GRAFANA / "requirements.txt").read_text().count("matplotlib") == 1


def test_flags_have_their_defaults_in_the_help():
    said = render("--help").stdout
    for words in ("--prometheus URL", "default: http://127.0.0.1:9090", "--range TIME", "default: 1h", "--job REGEX"):
        assert words in " ".join(said.split()), said


def test_an_unknown_dashboard_is_refused_with_those_there_are():
    done = render("--dashboard", "mine")
    assert done.returncode == 2
    assert "mine" in done.stderr and "aerie-wiring" in done.stderr
