"""Whether to ask the server at all, and what has gone wrong with it."""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable

from aerie_draft.errors import AerieError


class Availability:
    """Shared by all sequences of a worker. Any thread.

    After a failure nobody asks for a while, so that a dead server costs its time-out once and not
    once a round; the wait doubles from `first_wait` up to `longest_wait` seconds.
    """

    def __init__(
        self,
        first_wait: float = 0.25,
        longest_wait: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._first_wait = first_wait
        self._longest_wait = longest_wait
        self._clock = clock
        self._lock = threading.Lock()
        self._wait = first_wait
        self._ask_after = -float("inf")
        # By exception name: how often the server failed us.
        self.failures: collections.Counter[str] = collections.Counter()
        # By (reason, remedy): how often it had lost rows of a sequence, e.g.
        # ("EVICTED", "resent"), and what was done: "resent" from where it said, "reopened" with all
        # rows, or "reopened with a hole", without those that the worker had let go.
        self.losses: collections.Counter[tuple[str, str]] = collections.Counter()

    def ready(self) -> bool:
        with self._lock:
            return self._clock() >= self._ask_after

    def failed(self, error: AerieError) -> None:
        with self._lock:
            wait = getattr(error, "retry_after", None)
            if wait is None:
                wait, self._wait = self._wait, min(2 * self._wait, self._longest_wait)
            self._ask_after = self._clock() + wait
            self.failures[type(error).__name__] += 1

    def lost(self, reason: str, remedy: str) -> None:
        with self._lock:
            self.losses[reason, remedy] += 1

    def succeeded(self) -> None:
        with self._lock:
            self._wait = self._first_wait
