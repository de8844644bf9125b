"""What an expression must give, and whether Prometheus gave it."""

import dataclasses
import math

# Prometheus and these tests add the same numbers in another order.
RELATIVE = 1e-9


@dataclasses.dataclass(frozen=True)
class Expectation:
    """Series by their labels, each between two values, and why it is so when they differ."""

    series: dict  # frozenset of (label, value) -> (lowest, highest)
    why: str = ""

    def complaint(self, found):
        """What is wrong with {labels: value}; empty when nothing is."""
        wrong = [f"no series {_spelt(labels)}" for labels in self.series if labels not in found]
        wrong += [f"an unexpected series {_spelt(labels)} = {value:g}" for labels, value in found.items()
                  if labels not in self.series]
        for labels, (lowest, highest) in self.series.items():
            value = found.get(labels)
            if value is None:
                continue
            slack = RELATIVE * max(abs(lowest), abs(highest if math.isfinite(highest) else lowest))
            # So written, NaN fails.
            if not lowest - slack <= value <= highest + slack:
                wrong.append(f"{_spelt(labels)} = {value!r}; expected {_span(lowest, highest)}")
        return "; ".join(wrong)

    def text(self):
        if not self.series:
            return f"no series ({self.why})" if self.why else "no series"
        parts = [f"{_spelt(labels)} {_span(*span)}".strip() for labels, span in sorted(self.series.items(), key=_key)]
        return ", ".join(parts) + (f" ({self.why})" if self.why else "")


def found_text(found):
    return ", ".join(f"{_spelt(labels)} {value:.6g}".strip() for labels, value in sorted(found.items(), key=_key)) \
        or "no series"


def one(value):
    """A single series without labels."""
    return Expectation({frozenset(): (value, value)})


def one_between(lowest, highest, why):
    return Expectation({frozenset(): (lowest, highest)}, why)


def by(label, values, why=""):
    """A series for each value of a label: {its value: number or (lowest, highest)}."""
    return labelled({frozenset({(label, str(name))}): value for name, value in values.items()}, why)


def labelled(values, why=""):
    """{labels, as a dict's items or a frozenset: number or (lowest, highest)}."""
    return Expectation({frozenset(labels): value if isinstance(value, tuple) else (value, value)
                        for labels, value in values.items()}, why)


def nothing(why):
    return Expectation({}, why)


def _spelt(labels):
    return "{" + ", ".join(f'{name}="{value}"' for name, value in sorted(labels)) + "}" if labels else ""


def _span(lowest, highest):
    if lowest == highest:
        return f"{lowest:.6g}"
    return f"{lowest:.6g} to {highest:.6g}"


def _key(item):
    return sorted(item[0])
