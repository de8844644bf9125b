"""Asks a Prometheus the way Grafana does: variables filled in, rates over an interval that fits the range."""

import argparse
import json
import math
import re
import urllib.error
import urllib.parse
import urllib.request

TIMEOUT = 30  # seconds for one query
POINTS = 240  # of a line
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


class PrometheusError(Exception):
    """What was seen, what was expected, what to do."""


def duration(text):
    """Seconds of 90s, 15m, 1h, 7d."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text)
    if not found or float(found.group(1)) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; expected a number above 0 and one of s, m, h, d, w")
    return float(found.group(1)) * UNITS[found.group(2)]


class Prometheus:
    """`variables` are the dashboards' by name, as regular expressions; `span` and `scrape_interval` are seconds."""

    def __init__(self, url, variables, span, scrape_interval, end):
        self.url = url.rstrip("/")
        self.variables = variables
        self.start, self.end = end - span, end
        self.step = max(span / POINTS, 1.0)
        # As Grafana: at least four scrapes, or a rate has nothing to be made of.
        self.rate_interval = max(self.step + scrape_interval, 4 * scrape_interval)

    def filled(self, expr):
        """The expression with the variables' values in it."""
        expr = expr.replace("$__rate_interval", f"{math.ceil(self.rate_interval)}s")
        for name, value in self.variables.items():
            expr = expr.replace(f"${name}", value.replace("\\", "\\\\").replace('"', '\\"'))
        return expr

    def lines(self, expr):
        """[(labels, times, values)] over the range."""
        data = self._get("query_range", query=self.filled(expr), start=f"{self.start:.3f}", end=f"{self.end:.3f}",
                         step=f"{self.step:.3f}")
        return [(series["metric"], [float(moment) for moment, _ in series["values"]],
                 [float(value) for _, value in series["values"]]) for series in data["result"]]

    def now(self, expr):
        """[(labels, value)] at the end of the range."""
        data = self._get("query", query=self.filled(expr), time=f"{self.end:.3f}")
        if data["resultType"] == "scalar":
            return [({}, float(data["result"][1]))]
        return [(series["metric"], float(series["value"][1])) for series in data["result"]]

    def _get(self, path, **parameters):
        url = f"{self.url}/api/v1/{path}"
        try:
            # In the body: expressions are long, and addresses are cut.
            with urllib.request.urlopen(url, urllib.parse.urlencode(parameters).encode(), timeout=TIMEOUT) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise PrometheusError(f"{self.url} refused {parameters['query']!r}: {_reason(error)}; expected an answer; "
                                  "is it a Prometheus, and are --job, --drafter, --target and --instance valid regular "
                                  "expressions?") from error
        except (urllib.error.URLError, OSError, ValueError) as error:
            raise PrometheusError(f"{self.url} does not answer: {getattr(error, 'reason', error)}; expected a "
                                  "Prometheus; name its address with --prometheus") from error


def _reason(error):
    try:
        return json.load(error)["error"]
    except (ValueError, KeyError):
        return f"HTTP {error.code}"


def legend(template, labels):
    """A series' name: {{label}} filled in; all labels when the template says nothing."""
    if template:
        return re.sub(r"\{\{ *(\w+) *\}\}", lambda found: labels.get(found.group(1), ""), template)
    return ", ".join(f"{name}={value}" for name, value in sorted(labels.items()) if name != "__name__")
