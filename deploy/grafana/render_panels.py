"""Draws single panels with matplotlib, one function for each kind of Grafana panel that the dashboards have.

What one would get wrong: "no traffic" is drawn as words. An empty picture would look like a fault of the drawing.
"""

import datetime
import math
import re

import matplotlib

matplotlib.use("Agg")

import matplotlib.dates as dates  # noqa: E402
import matplotlib.ticker as ticker  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from prometheus_api import legend  # noqa: E402
from units import spell  # noqa: E402

NO_TRAFFIC = "no traffic"
PIXELS_PER_COLUMN, PIXELS_PER_ROW, DPI = 55, 36, 100
COLOURS = {"red": "#c4162a", "orange": "#e0752d", "green": "#37872d", "blue": "#1f60c4", "text": "#444444"}
STATE_COLOURS = {"ok": "green", "unknown": "blue", "suspect": "orange", "wrong": "red"}
GREY = "#8e8e8e"


def draw(panel, prometheus, path):
    """The panel as a PNG. Returns whether there was anything to draw."""
    place = panel["gridPos"]
    figure = Figure(figsize=(place["w"] * PIXELS_PER_COLUMN / DPI, place["h"] * PIXELS_PER_ROW / DPI), dpi=DPI)
    kind = panel["type"]
    if kind == "stat" and panel["options"]["textMode"] == "name":
        kind = "states"
    drawn = KINDS[kind](figure, panel, prometheus)
    if not drawn:
        figure.clear()
        figure.text(0.5, 0.5, NO_TRAFFIC, ha="center", va="center", color=GREY, fontsize=12)
    figure.savefig(path)
    return drawn


def _unit(panel):
    return panel["fieldConfig"]["defaults"]["unit"]


def _axis_unit(panel):
    """Words beside every tick would leave no room for the lines; the title and the description have them."""
    return "none" if _unit(panel).startswith("suffix:") else _unit(panel)


def _colour(panel, value):
    """By the panel's thresholds; the last one that the value reaches."""
    steps = panel["fieldConfig"]["defaults"].get("thresholds", {}).get("steps", [])
    reached = [step["color"] for step in steps if step["value"] is None or value >= step["value"]]
    return COLOURS[reached[-1]] if reached else COLOURS["blue"]


def _series(panel, prometheus):
    """[(name, times, values)] of all its queries, without what has no number in it."""
    found = [(legend(target["legendFormat"], labels), times, values) for target in panel["targets"]
             for labels, times, values in prometheus.lines(target["expr"])]
    return sorted((series for series in found if any(math.isfinite(value) for value in series[2])),
                  key=lambda series: _natural(series[0]))


def _natural(name):
    """Sorts "capture 2" before "capture 15"."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name) if part]


def _with_gaps(times, values, step):
    """A line must not be drawn over a time without values: that would claim some."""
    xs, ys = [], []
    for moment, value in zip(times, values):
        if xs and moment - xs[-1] > 1.5 * step:
            xs.append(xs[-1] + step)
            ys.append(math.nan)
        xs.append(moment)
        ys.append(value)
    return [datetime.datetime.fromtimestamp(x) for x in xs], ys


def _axes(figure, panel, prometheus, place):
    axes = figure.add_axes(place)
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: spell(value, _axis_unit(panel))))
    axes.yaxis.set_major_locator(ticker.MaxNLocator(5))
    axes.set_xlim(*(datetime.datetime.fromtimestamp(moment) for moment in (prometheus.start, prometheus.end)))
    axes.xaxis.set_major_locator(dates.AutoDateLocator(maxticks=6))
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(axes.xaxis.get_major_locator()))
    axes.tick_params(labelsize=7)
    axes.xaxis.get_offset_text().set_size(7)
    axes.grid(color="#e4e4e4", linewidth=0.6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return axes


def _lines(figure, panel, prometheus):
    series = _series(panel, prometheus)
    if not series:
        return False
    lines_of_legend = -(-len(series) // 3)
    bottom = 0.13 + 0.06 * lines_of_legend
    axes = _axes(figure, panel, prometheus, (0.12, bottom, 0.85, 0.96 - bottom))
    defaults = panel["fieldConfig"]["defaults"]
    colours = [COLOURS[STATE_COLOURS[name]] if name in STATE_COLOURS else None for name, _, _ in series]
    if defaults["custom"]["stacking"]["mode"] == "normal":
        moments = sorted({moment for _, times, _ in series for moment in times})
        values = [[dict(zip(times, values)).get(moment, 0.0) for moment in moments] for _, times, values in series]
        axes.stackplot([datetime.datetime.fromtimestamp(moment) for moment in moments], values, alpha=0.6,
                       labels=[name for name, _, _ in series],
                       colors=colours if all(colours) else None)
    else:
        for (name, times, values), colour in zip(series, colours):
            # A single sample is no line.
            axes.plot(*_with_gaps(times, values, prometheus.step), linewidth=1.2, label=name, color=colour,
                      marker="." if len(times) == 1 else None)
    _set_bounds(axes, defaults, [value for _, _, values in series for value in values if math.isfinite(value)])
    axes.legend(fontsize=6.5, loc="lower left", bbox_to_anchor=(0, 0), bbox_transform=figure.transFigure, ncols=3,
                frameon=False)
    return True


def _set_bounds(axes, defaults, values):
    """As Grafana: from the panel's `min`, which values below it push down; up to its `max`, or what the values need."""
    low, high = axes.get_ylim()
    if "min" in defaults:
        low = defaults["min"] if min(values) >= defaults["min"] else low
        high = high if max(values) > low else low + 1
    axes.set_ylim(low, max(defaults["max"] * 1.02, max(values)) if "max" in defaults else high)


def _stat(figure, panel, prometheus):
    (target,) = panel["targets"]
    found = [value for _, value in prometheus.now(target["expr"]) if not math.isnan(value)]
    if not found:
        return False
    figure.text(0.5, 0.5, spell(found[0], _unit(panel)), ha="center", va="center", color=_colour(panel, found[0]),
                fontsize=15, fontweight="bold")
    return True


def _states(figure, panel, prometheus):
    names = [legend(target["legendFormat"], labels) for target in panel["targets"]
             for labels, value in prometheus.now(target["expr"]) if value == 1]
    for number, name in enumerate(sorted(names)):
        colour = COLOURS[STATE_COLOURS.get(name.rsplit(": ", 1)[-1], "text")]
        figure.text(0.5, 1 - (number + 0.5) / len(names), name, ha="center", va="center", color="white", fontsize=11,
                    bbox={"facecolor": colour, "edgecolor": "none", "boxstyle": "round,pad=0.6"})
    return bool(names)


def _bars(figure, panel, prometheus):
    found = [(legend(target["legendFormat"], labels), value) for target in panel["targets"]
             for labels, value in prometheus.now(target["expr"]) if math.isfinite(value)]
    if not found:
        return False
    found.sort(key=lambda bar: (len(bar[0]), bar[0]))
    axes = figure.add_axes((0.2, 0.06, 0.66, 0.9))
    axes.barh(range(len(found)), [value for _, value in found], color=COLOURS["blue"])
    axes.set_yticks(range(len(found)), [name for name, _ in found], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlim(0, panel["fieldConfig"]["defaults"].get("max", max(value for _, value in found) or 1))
    for number, (_, value) in enumerate(found):
        axes.text(axes.get_xlim()[1] * 1.02, number, spell(value, _unit(panel)), va="center", fontsize=7)
    axes.set_xticks([])
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    return True


def _heatmap(figure, panel, prometheus):
    """Prometheus' buckets hold everything up to their bound; what is drawn is what lies between two bounds."""
    (target,) = panel["targets"]
    found = sorted(((float(labels["le"]), dict(zip(times, values)))
                    for labels, times, values in prometheus.lines(target["expr"])), key=lambda bucket: bucket[0])
    moments = sorted({moment for _, values in found for moment in values})
    rows = [[max(0.0, upper.get(moment, 0.0) - lower.get(moment, 0.0)) for moment in moments]
            for (_, lower), (_, upper) in zip([(0.0, {}), *found], found)]
    filled = [number for number, row in enumerate(rows) if any(value > 1e-9 for value in row)]
    if not filled:
        return False
    # The buckets that have something, and one on either side.
    first, last = max(0, filled[0] - 1), min(len(found), filled[-1] + 2)
    axes = _axes(figure, panel, prometheus, (0.12, 0.13, 0.75, 0.83))
    edges = [moment - prometheus.step / 2 for moment in moments] + [moments[-1] + prometheus.step / 2]
    mesh = axes.pcolormesh([datetime.datetime.fromtimestamp(edge) for edge in edges], range(last - first + 1),
                           [[value or math.nan for value in row] for row in rows[first:last]], cmap="Oranges",
                           vmin=0, shading="flat")
    names = [spell(bound, _axis_unit(panel)) for bound, _ in found[first:last]]
    every = max(1, len(names) // 8)
    axes.set_yticks(range(1, last - first + 1)[::every], names[::every])
    colours = figure.colorbar(mesh, cax=figure.add_axes((0.89, 0.13, 0.02, 0.83)))
    colours.ax.tick_params(labelsize=6)
    return True


def _table(figure, panel, prometheus):
    (target,) = panel["targets"]
    found = [labels for labels, _ in prometheus.now(target["expr"])]
    if not found:
        return False
    names = sorted({name for labels in found for name in labels})
    lines = [f"{name}: {labels.get(name, '')}" for labels in found for name in names]
    figure.text(0.03, 0.95, "\n".join(lines), ha="left", va="top", fontsize=7.5, family="monospace", wrap=True)
    return True


KINDS = {"timeseries": _lines, "stat": _stat, "states": _states, "bargauge": _bars, "heatmap": _heatmap,
         "table": _table}
