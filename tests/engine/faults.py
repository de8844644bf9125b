"""What happens to a vLLM under load while its draft server dies, hangs, is slow, or is another one.

Each fault is played under eight concurrent HTTP clients: drafts flow, the fault comes, requests go
on without drafts, the fault ends, and the time until drafts flow again is taken. Every answer is
compared with that of the same engine without drafts.
"""

from __future__ import annotations

import dataclasses
import pathlib
import signal
import time

from engine_answers import Answer
from engine_process import AerieServer, Engine, EngineError, aerie_flags, head_with_ids
from relay import Relay
from traffic import Traffic

K = 4
MAX_TOKENS = 24
# Far more than anything here takes; the machine may be busy.
PATIENCE = 600.0
DEADLINE = 2.0  # of an engine round, in seconds
# Small on purpose: long prompts come in pieces, prefixes are found, requests are preempted.
ENGINE_FLAGS = [
    *("--max-model-len", "256", "--max-num-seqs", "8", "--max-num-batched-tokens", "64"),
    *("--block-size", "32", "--num-gpu-blocks-override", "16", "--enable-prefix-caching"),
]


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table."""

    fault: str
    requests: int  # that met it: under way when it came, or begun before drafts were back
    lost_tokens: int  # of answers that never came whole
    wrong_tokens: int  # answers that differ from plain decoding by more than a tie
    ties: int
    seconds_until_drafts: float  # from the end of the fault

    @staticmethod
    def head() -> str:
        return (
            "| fault | requests | lost | wrong | ties | seconds until drafts were back |\n"
            "|---|---|---|---|---|---|"
        )

    def line(self) -> str:
        return (
            f"| {self.fault} | {self.requests} | {self.lost_tokens} | {self.wrong_tokens} | "
            f"{self.ties} | {self.seconds_until_drafts:.1f} |"
        )


class World:
    """An engine behind a relay, and whatever server the relay leads to."""

    def __init__(self, python, package, server_binary, head, target, work: pathlib.Path):
        self._binary, self._head, self._target, self._work = server_binary, head, target, work
        self._starts = 0
        self.relay = Relay()
        self.server = self.start_server()
        self.engine = Engine(
            python,
            target,
            work / "engine",
            *ENGINE_FLAGS,
            *aerie_flags(self.relay.address, K, deadline=DEADLINE),
            package=package,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.engine.stop()
        self.server.stop()
        self.relay.close()

    def start_server(self, head=None, *flags) -> AerieServer:
        self._starts += 1
        folder = self._work / f"server{self._starts}"
        self.server = AerieServer(self._binary, head or self._head, self._target, folder, *flags)
        self.relay.lead_to(self.server.address)
        return self.server

    def kill(self):
        self.relay.lead_to(None)
        self.server.process.kill()
        self.server.stop()

    def restart(self):
        self.server.stop()
        self.start_server()

    def hang(self):
        self.server.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.server.process.send_signal(signal.SIGCONT)

    def slow_down(self):
        self.relay.delay = 1.5 * DEADLINE

    def speed_up(self):
        self.relay.delay = 0.0

    def swap(self):
        """A head that was trained on other boundaries comes in the place of the right one."""
        self.kill()
        head = head_with_ids(self._head, [1, 13, 25], self._work / "other-head")
        # Ids of no known default may mean two things, and the server does not guess.
        self.start_server(head, "--layer-id-convention", "output-of-layer")

    def swap_back(self):
        self.kill()
        self.start_server()

    def drafts(self) -> float:
        return self.engine.metrics().sum("vllm:spec_decode_num_drafts_total")


def nothing():
    """The fault ends by itself."""


def faults(world: World):
    """(name, how it begins, how it ends, whether drafts must stop meanwhile)"""
    return [
        ("killed, started again later", world.kill, world.start_server, True),
        ("restarted (SIGTERM)", world.restart, nothing, False),
        ("stopped (SIGSTOP), continued", world.hang, world.go_on, True),
        ("slower than the deadline", world.slow_down, world.speed_up, True),
        ("another head at the address", world.swap, world.swap_back, True),
    ]


def play(world: World, plain: dict[str, Answer], name, begin, end, must_stop) -> Row:
    with Traffic(world.engine, plain, MAX_TOKENS) as traffic:
        _wait_for_drafts(world, world.drafts())
        before = traffic.answered
        begin()
        if must_stop:
            _wait_until_drafts_stop(world, traffic)
        end()
        started = time.monotonic()
        _wait_for_drafts(world, world.drafts())
        seconds = time.monotonic() - started
    requests = traffic.answered - before  # those that were under way have ended, too
    for note in traffic.faults:
        print(f"{name}: {note}")
    return Row(
        name,
        requests,
        traffic.verdicts["lost"],
        traffic.verdicts["wrong"],
        traffic.verdicts["tie"],
        seconds,
    )


def ask_plain(engine: Engine, prompts) -> dict[str, Answer]:
    """The answers to compare with, each with how close its tokens were to being others."""
    return {prompt: engine.ask(prompt, MAX_TOKENS, top_logprobs=True) for prompt in prompts}


def _wait_for_drafts(world: World, count: float) -> None:
    """Until some more than `count` drafts have been verified."""
    end = time.monotonic() + PATIENCE
    while world.drafts() < count + 4:
        if time.monotonic() > end:
            raise EngineError(f"no drafts within {PATIENCE:.0f} s; {world.engine.log_tail()}")
        time.sleep(0.05)


def _wait_until_drafts_stop(world: World, traffic: Traffic) -> None:
    """Until requests end and not one draft is verified meanwhile."""
    end = time.monotonic() + PATIENCE
    while True:
        count = world.drafts()
        traffic.wait_for(4, PATIENCE)
        if world.drafts() == count:
            return
        if time.monotonic() > end:
            raise EngineError("drafts went on during a fault; expected them to stop")
