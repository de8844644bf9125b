"""What the strict server does to a worker: one scenario a run of the worker's text.

A fault is tied to the number of a drafting call (k > 0, counted from 1 within the scenario,
repeated and resent ones too), never to a time: a slow machine plays the same script.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping


class Fault(enum.Enum):
    """What happens to one call."""

    EVICT_ALL = "all rows of the session are gone"
    EVICT_HALF = "the newer half of the session's rows is gone"
    FORGET = "the session is unknown, as after a restart"
    DRAINING = "UNAVAILABLE, the server drains"
    FULL = "RESOURCE_EXHAUSTED with a time to try again"
    LOSE_ANSWER = "the call is served and its answer lost with the connection"
    HOLD = "the answer is held back until the worker has given it up"
    DIE = "the server is gone until the end of the scenario"
    CONTEXT_LIMIT = "CONTEXT_LIMIT, for this call and all later ones"
    UNKNOWN_REASON = "RESOURCE_EXHAUSTED with a reason that no worker knows"


# How many tokens of a proposal are the worker's own text, call after call.
ALL, NONE, ONE, MOST = "all", "none", "one", "most"
_MIXED = (ALL, NONE, ONE, MOST)


@dataclasses.dataclass(frozen=True)
class Scenario:
    name: str
    summary: str
    right: tuple[str, ...] = _MIXED  # empty: proposals have no tokens
    faults: Mapping[int, Fault] = dataclasses.field(default_factory=dict)
    open_faults: Mapping[int, Fault] = dataclasses.field(default_factory=dict)  # by opening
    short: bool = False  # proposals of fewer tokens than asked for
    newer: bool = False  # answers carry fields that this contract does not have
    rules: tuple[str, ...] = ()  # rules that need this scenario beside `plain` and `drafts`

    @property
    def faulty(self) -> bool:
        return bool(self.faults or self.open_faults)


PLAIN = Scenario("plain", "no draft at all: the text is learned", right=())
DRAFTS = Scenario("drafts", "drafts of which all, none, one or most tokens are right")
SCENARIOS = (
    PLAIN,
    DRAFTS,
    Scenario(
        "short-drafts",
        "proposals shorter than asked for, or empty",
        short=True,
        rules=("W-SHORT-DRAFT",),
    ),
    Scenario(
        "lost-rows",
        "rows are evicted: all, then half",
        faults={3: Fault.EVICT_ALL, 6: Fault.EVICT_HALF},
        rules=("W-RESEND-FROM", "W-FAIL-OPEN", "W-ROWS-SAME"),
    ),
    Scenario(
        "restart",
        "sessions are forgotten, twice",
        faults={3: Fault.FORGET, 6: Fault.FORGET},
        rules=("W-SESSION-LOST", "W-FAIL-OPEN", "W-ROWS-SAME"),
    ),
    Scenario(
        "refusals",
        "opening and drafting are refused: draining, full",
        faults={2: Fault.DRAINING, 4: Fault.FULL, 6: Fault.DRAINING},
        open_faults={1: Fault.DRAINING},
        rules=("W-RETRY-AFTER", "W-FAIL-OPEN", "W-COMES-BACK", "W-BASE"),
    ),
    Scenario(
        "lost-answers",
        "calls are served, their answers lost",
        faults={3: Fault.LOSE_ANSWER, 6: Fault.LOSE_ANSWER},
        rules=("W-SEQ-RETRY", "W-FAIL-OPEN", "W-COMES-BACK", "W-BASE", "W-ACCEPTED"),
    ),
    Scenario(
        "slow",
        "one answer is held back",
        right=(ALL,),
        faults={3: Fault.HOLD},
        rules=("W-DEADLINE", "W-LATE-DRAFT", "W-FAIL-OPEN", "W-COMES-BACK"),
    ),
    Scenario(
        "context-limit",
        "the sequence leaves the server's context",
        faults={4: Fault.CONTEXT_LIMIT},
        rules=("W-CONTEXT-LIMIT", "W-FAIL-OPEN"),
    ),
    Scenario(
        "newer-server",
        "unknown fields, enum values and reasons",
        faults={4: Fault.UNKNOWN_REASON},
        newer=True,
        rules=("W-NEWER-SERVER", "W-FAIL-OPEN"),
    ),
    # Last: what a worker does about a dead server may last into what follows.
    Scenario(
        "dies",
        "the server dies and stays away",
        faults={4: Fault.DIE},
        rules=("W-FAIL-OPEN",),
    ),
)


def scenarios_for(rules: set[str] | None, names: set[str] | None = None) -> tuple[Scenario, ...]:
    """`plain`, `drafts` and those that `rules` need (None: all), or those of `names`."""
    chosen = []
    for scenario in SCENARIOS:
        needed = scenario in (PLAIN, DRAFTS) or rules is None or rules & set(scenario.rules)
        if scenario is PLAIN or (scenario.name in names if names else needed):
            chosen.append(scenario)
    return tuple(chosen)
