"""HTTP clients that ask an engine without pause, and judge what comes back."""

from __future__ import annotations

import collections
import threading

from engine_answers import Answer, compare
from engine_process import Engine, EngineError


class Traffic:
    """`clients` threads. A context manager: leaving it waits for the last answers."""

    def __init__(self, engine: Engine, plain: dict[str, Answer], max_tokens: int, clients: int = 8):
        self._engine = engine
        self._plain = plain
        self._max_tokens = max_tokens
        self._changed = threading.Condition()
        self._stop = False
        # By verdict: equal, tie, wrong, lost (no whole answer).
        self.verdicts: collections.Counter[str] = collections.Counter()
        self.faults: list[str] = []
        self._threads = [
            threading.Thread(target=self._ask_on, args=(number,)) for number in range(clients)
        ]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop = True
        for thread in self._threads:
            thread.join()

    @property
    def answered(self) -> int:
        with self._changed:
            return sum(self.verdicts.values())

    def wait_for(self, count: int, patience: float) -> None:
        """Until so many more requests are over."""
        with self._changed:
            end = sum(self.verdicts.values()) + count
            if not self._changed.wait_for(lambda: sum(self.verdicts.values()) >= end, patience):
                raise EngineError(
                    f"waited {patience:.0f} s for {count} answers; {self._engine.log_tail()}"
                )

    def _ask_on(self, number: int):
        prompts = list(self._plain)
        turn = number
        while not self._stop:
            prompt = prompts[turn % len(prompts)]
            turn += 3  # Neighbours in a batch change.
            try:
                answer = self._engine.ask(prompt, self._max_tokens)
                verdict = compare(self._plain[prompt], answer)
                note = "" if verdict != "wrong" else f"{prompt}: {answer.text!r}"
            except (EngineError, OSError) as error:
                verdict, note = "lost", f"{prompt}: {error}"
            with self._changed:
                self.verdicts[verdict] += 1
                if note:
                    self.faults.append(note)
                self._changed.notify_all()
