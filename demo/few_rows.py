"""Matrix products of few rows on a CPU, each done the way that this machine does it fastest.

Decoding multiplies every weight by one row, verification by k + 1 rows. How long a library takes
for so few rows depends on its version and on the processor: two rows may cost 1.6 times one row, or
less than one row, though the weights, which are all there is to read, are the same. So the ways
that PyTorch offers are timed once at start. Plain decoding profits as drafting does.
"""

from __future__ import annotations

import time

import torch
from torch.nn import functional


def _as_linear(x, weight):
    return functional.linear(x, weight)


def _weight_first(x, weight):
    # Contiguous: what comes after would else take a slow path, attention above all.
    return torch.mm(weight, x.t()).t().contiguous()


def _weight_first_even(x, weight):
    """As above with a row of zeros added to an odd number of rows."""
    rows = x.shape[0]
    return torch.mm(weight, functional.pad(x, (0, 0, 0, rows % 2)).t())[:, :rows].t().contiguous()


WAYS = (_as_linear, _weight_first, _weight_first_even)


class FewRowsLinear(torch.nn.Module):
    """A Linear without bias whose product is looked up by its number of rows."""

    def __init__(self, linear: torch.nn.Linear, way_of_width: dict[int, object]):
        super().__init__()
        self.weight = linear.weight  # Shared, not copied: an output matrix may be the embedding.
        self._way_of_width = way_of_width

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.reshape(-1, x.shape[-1])
        way = self._way_of_width.get(flat.shape[0], _as_linear)
        return way(flat, self.weight).reshape(*x.shape[:-1], -1)


@torch.inference_mode()
def speed_up(model: torch.nn.Module, most_rows: int, repeats: int = 8) -> dict[int, str]:
    """Replaces the model's products. Returns the way chosen for each number of rows."""
    places = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if type(child) is torch.nn.Linear and child.bias is None
    ]
    way_of_width = {
        rows: _fastest([child.weight for _, _, child in places], rows, repeats)
        for rows in range(1, most_rows + 1)
    }
    for parent, name, child in places:
        setattr(parent, name, FewRowsLinear(child, way_of_width))
    return {rows: way.__name__.lstrip("_") for rows, way in way_of_width.items()}


def _fastest(weights, rows: int, repeats: int):
    # All weights in turn, as decoding does: one alone would stay in the cache.
    inputs = {width: torch.randn(rows, width) for width in {w.shape[1] for w in weights}}
    ways = WAYS if rows % 2 else WAYS[:2]
    times = {way: [] for way in ways}
    for way in ways * repeats:  # Taking turns, so that a disturbance meets all of them.
        started = time.perf_counter()
        for weight in weights:
            way(inputs[weight.shape[1]], weight)
        times[way].append(time.perf_counter() - started)
    return min(ways, key=lambda way: min(times[way]))  # By the least disturbed run.
