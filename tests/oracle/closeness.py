"""One comparison for all oracles: the largest absolute difference, which a NaN can never pass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

# Logits of one head, computed by two programs. Why these: the demo head's logits reach about 20 and
# float32 keeps 7 digits, so two correct float32 programs end up some 1e-5 apart after five chained
# passes; a wrong equation shows at 1e-2 and above.
FLOAT32_AGAINST_REFERENCE = 1e-4
FLOAT32_AGAINST_FLOAT32 = 2e-4

# bfloat16 keeps 8 bits, so each of some forty rounded steps of a chain adds up to 0.4 %.
BFLOAT16_RELATIVE = 2e-2

# float64 against float64 in another order of summation.
FLOAT64_REORDERED = 1e-9


def largest_difference(actual: np.ndarray, expected: np.ndarray) -> float:
    """NaN if either side holds one, or if both are infinite in one place."""
    assert actual.shape == expected.shape, f"shapes {actual.shape} and {expected.shape} differ"
    assert actual.size > 0, "nothing to compare"
    with np.errstate(invalid="ignore"):  # inf - inf is the NaN that is wanted
        difference = np.abs(np.asarray(actual, np.float64) - np.asarray(expected, np.float64))
    return float(np.max(difference))


def relative_difference(actual: np.ndarray, expected: np.ndarray) -> float:
    """Of rows: the largest |actual - expected| / |expected|, in root mean squares over a row."""
    assert actual.shape == expected.shape, f"shapes {actual.shape} and {expected.shape} differ"
    difference = np.asarray(actual, np.float64) - np.asarray(expected, np.float64)
    sizes = [np.sqrt(np.mean(np.square(x), axis=-1)) for x in (difference, expected)]
    return float(np.max(sizes[0] / sizes[1]))


def assert_close(
    actual: np.ndarray,
    expected: np.ndarray,
    limit: float,
    what: str,
    difference: Callable[[np.ndarray, np.ndarray], float] = largest_difference,
) -> float:
    worst = difference(actual, expected)
    assert worst <= limit, f"{what}: largest difference {worst:.3e}, expected at most {limit:.0e}"
    return worst
