"""Numbers with their units, as Grafana spells them for those that the dashboards use."""

import math

BINARY = ("B", "KiB", "MiB", "GiB", "TiB")
DECIMAL = ("B/s", "kB/s", "MB/s", "GB/s", "TB/s")


def spell(value, unit):
    """A value for people. NaN is no traffic."""
    if value is None or math.isnan(value):
        return "no traffic"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if unit == "percentunit":
        return f"{_short(100 * value)} %"
    if unit == "s":
        return _seconds(value)
    if unit == "bytes":
        return _scaled(value, 1024, BINARY)
    if unit == "Bps":
        return _scaled(value, 1000, DECIMAL)
    if unit == "reqps":
        return f"{_short(value)} req/s"
    if unit.startswith("suffix:"):
        return f"{_short(value)} {unit.removeprefix('suffix:').strip()}"
    return _short(value)


def _short(value):
    """Three digits that count; whole numbers stay whole."""
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value)}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.4g}"


def _scaled(value, base, names):
    power = 0
    while abs(value) >= base and power < len(names) - 1:
        value, power = value / base, power + 1
    return f"{_short(value)} {names[power]}"


def _seconds(value):
    magnitude = abs(value)
    for least, factor, name in ((86400, 1 / 86400, "d"), (3600, 1 / 3600, "h"), (60, 1 / 60, "min"), (1, 1, "s"),
                                (1e-3, 1e3, "ms"), (0, 1e6, "µs")):
        if magnitude >= least:
            return f"{_short(value * factor)} {name}"
    return f"{value} s"
