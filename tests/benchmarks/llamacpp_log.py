"""What llama.cpp's log says of its drafting: how often, and how long.

Its server logs a line with the sums since it was started whenever a request ends, and only with
`--verbosity 4` or more. What a reader would get wrong: a draft call always runs the head as often
as the draft is allowed to be long, also where fewer tokens are kept since the answer is about to
end. So passes are calls times k, and `generated` is at most that.
"""

from __future__ import annotations

import dataclasses
import re

_STATISTICS = re.compile(
    r"statistics\s+(?P<name>\S+): #calls\(b,g,a\) =\s*\d+\s+(?P<calls>\d+)\s+\d+,"
    r".*#gen tokens =\s*(?P<generated>\d+),"
    r".*dur\(b,g,a\) = [\d.]+, (?P<ms>[\d.]+), [\d.]+ ms"
)
_BUILD = re.compile(r"system_info: (.*)")


@dataclasses.dataclass(frozen=True)
class Drafting:
    """Sums since the start, of one way to draft."""

    calls: int
    generated: int  # tokens
    ms: float


def drafting(log: str, name: str = "draft-eagle3") -> list[Drafting]:
    """One entry for each request that ended, in order."""
    found = []
    for line in log.splitlines():
        match = _STATISTICS.search(line)
        if match and match["name"] == name:
            found.append(
                Drafting(int(match["calls"]), int(match["generated"]), float(match["ms"]))
            )
    return found


def pass_us(sums: list[Drafting], k: int) -> list[float]:
    """Mean microseconds of a pass of the head, of each request behind the first.

    The first one warms up. ValueError: these are not the sums of drafts of up to k tokens.
    """
    if len(sums) < 2:
        raise ValueError(
            f"the log tells of {len(sums)} requests; expected two or more; is its verbosity 4?"
        )
    means = []
    for before, after in zip(sums, sums[1:]):
        calls, generated = after.calls - before.calls, after.generated - before.generated
        if calls < 1 or not calls <= generated <= calls * k:
            raise ValueError(
                f"{calls} draft calls gave {generated} tokens; expected 1 to {k} tokens of each; "
                "compare the lines with this version's source"
            )
        means.append((after.ms - before.ms) * 1e3 / (calls * k))
    return means


def build(log: str) -> str:
    """What it says of the CPU features that it was built for and found; empty: nothing."""
    match = _BUILD.search(log)
    return match[1].strip() if match else ""
