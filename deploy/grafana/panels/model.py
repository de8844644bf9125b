"""The words in which dashboards are written: Dashboard, Row, Panel, Query, and helpers for their expressions.

What one would get wrong: order matters in PromQL. rate() of each series comes first, then the sum, then the division,
and every denominator is guarded with `> 0` (`ratio` does it), so that a panel says "no traffic" instead of 0 or NaN.
"""

import dataclasses

# The dashboards' variables. Series of a loaded drafter carry drafter and target; those of the server's calls, of its
# request log and of its process do not, and a selector that asks for them finds nothing.
SELECT = 'job=~"$job",drafter=~"$drafter",target=~"$target",instance=~"$instance"'
SELECT_PROCESS = 'job=~"$job",instance=~"$instance"'
# What came of loading a drafter belongs to its name, whatever its target is.
SELECT_LOADS = 'job=~"$job",drafter=~"$drafter",instance=~"$instance"'
# Recording rules have summed over instances.
SELECT_RULE = 'job=~"$job",drafter=~"$drafter",target=~"$target"'


@dataclasses.dataclass(frozen=True)
class Query:
    """One expression and what its series are called: {{label}} stands for a label's value."""

    expr: str
    legend: str


@dataclasses.dataclass(frozen=True)
class Panel:
    """`kind`: stat, timeseries, stacked, bars (a bar a series), heatmap (of histogram buckets), table or states."""

    title: str
    kind: str
    unit: str  # a unit of Grafana's, see UNITS
    description: str
    queries: tuple[Query, ...]
    width: int = 8  # of 24 columns
    height: int = 8
    minimum: float | None = 0
    maximum: float | None = None
    thresholds: tuple[tuple[float | None, str], ...] = ()  # (from this value on, colour); the first has None


@dataclasses.dataclass(frozen=True)
class Row:
    title: str
    panels: tuple[Panel, ...]


@dataclasses.dataclass(frozen=True)
class Dashboard:
    uid: str
    title: str
    description: str
    rows: tuple[Row, ...]

    def panels(self):
        return [panel for row in self.rows for panel in row.panels]


# Grafana's ids. "suffix:" is its own way to say a unit that it does not know.
UNITS = {
    "none", "percentunit", "s", "bytes", "Bps", "reqps", "dateTimeFromNow",
    "suffix: tokens", "suffix: tok/s", "suffix: drafts/s", "suffix: rows/s", "suffix: /s", "suffix: /min",
    "suffix: sessions", "suffix: calls", "suffix: cores", "suffix: levels", "suffix: requests/s",
}


def series(metric, *labels, select=SELECT):
    """The selector for a metric: series('aerie_kv_pages', 'state!="free"')."""
    return f"{metric}{{{','.join((select, *labels))}}}"


def rate(metric, *labels, by=(), select=SELECT):
    """Per second, summed over all series, or by labels."""
    grouping = f" by ({', '.join(by)})" if by else ""
    return f"sum{grouping} (rate({series(metric, *labels, select=select)}[$__rate_interval]))"


def total(metric, *labels, by=(), select=SELECT):
    """A gauge, summed over all series, or by labels."""
    grouping = f" by ({', '.join(by)})" if by else ""
    return f"sum{grouping} ({series(metric, *labels, select=select)})"


def ratio(numerator, denominator):
    return f"{numerator} / ({denominator} > 0)"


def mean(histogram, *labels, by=(), select=SELECT):
    """What a histogram's observations are on average."""
    return ratio(rate(f"{histogram}_sum", *labels, by=by, select=select),
                 rate(f"{histogram}_count", *labels, by=by, select=select))


def quantile(share, histogram, *labels, by=(), select=SELECT):
    """Of a histogram; NaN, which `>= 0` drops, when it got nothing."""
    return f"histogram_quantile({share}, {rate(f'{histogram}_bucket', *labels, by=('le', *by), select=select)}) >= 0"


def buckets(histogram, *labels):
    """Observations a second by bucket, for a heat map."""
    return rate(f"{histogram}_bucket", *labels, by=("le",))


def accept_length(by=()):
    """Mean accept length, bonus included."""
    return "1 + " + ratio(rate("aerie_spec_decode_num_accepted_tokens_total", by=by),
                          rate("aerie_spec_decode_num_drafts_total", by=by))
