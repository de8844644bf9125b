"""What Prometheus makes of samples, written down a second time: rate() and histogram_quantile().

What one would get wrong: rate() is not the difference over the window. It stretches the difference from the time
between the first and the last sample to the ends of the window, by about a scrape interval at most. Stretched alike,
ratios of rates come out exactly; absolute rates do too when the samples' times are known, as they are here.
"""


def rate_factor(times, start, end):
    """What the increase of a counter that was 0 at its first sample is multiplied with to become rate(counter[w]).

    `times` are those of its samples, all in whole milliseconds, as Prometheus keeps them: as seconds since 1970 they
    would be off by more than these tests allow. The rate is per second. A counter that began at 0 is not stretched
    towards `start`: it would have to have been below 0.
    """
    times = [time for time in times if start <= time <= end]
    assert len(times) >= 2, f"{len(times)} samples from {start} to {end}; expected two or more"
    sampled = times[-1] - times[0]
    interval = sampled / (len(times) - 1)
    to_end = end - times[-1]
    stretched = sampled + (to_end if to_end < 1.1 * interval else interval / 2)
    return stretched / sampled / ((end - start) / 1000)


def bucket_counts(observations, bounds):
    """Cumulative counts, the last of all."""
    return [sum(value <= bound for value in observations) for bound in bounds]


def quantile_range(share, observations, bounds):
    """(lowest, highest) value that histogram_quantile() may give.

    They differ where the rank falls exactly on a bucket's count: whether that bucket or the next that has anything is
    taken there depends on the last bit of the rates.
    """
    counts = bucket_counts(observations, bounds)
    if not counts[-1]:
        return None
    values = [_quantile(share * counts[-1] * (1 + nudge), counts, bounds) for nudge in (-1e-9, 0, 1e-9)]
    return min(values), max(values)


def _quantile(rank, counts, bounds):
    place = next((i for i, count in enumerate(counts) if count >= rank), len(counts) - 1)
    if bounds[place] == float("inf"):
        return bounds[place - 1]
    lower, before = (bounds[place - 1], counts[place - 1]) if place else (0.0, 0)
    return lower + (bounds[place] - lower) * (rank - before) / (counts[place] - before)
