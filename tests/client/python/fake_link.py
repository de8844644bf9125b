"""A link of the vLLM worker without a network: a fake server's rules, answers held back at will.

Time is the test's: waiting for an answer that is held back lets the clock run.
"""

from __future__ import annotations

import grpc
from aerie_draft import codec
from aerie_draft.errors import Unavailable, error_from_detail
from aerie_draft.vllm.link import Call
from fake_server import FakeServer, Refusal


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class FakeLink:
    """Made by connect(); the test keeps the network, which says how things go."""

    def __init__(self, network: Network):
        self._network = network
        self.sessions_survive = network.sessions_survive
        self.failure = None
        self.closed = False

    def server_info(self, timeout, wait_for_ready=False):
        if self._network.dead:
            raise unavailable()
        self._network.infos += 1
        return codec.server_info_value(self._network.server.server_info())

    def post(self, messages):
        self._network.messages += bool(messages)
        return [self._post(kind, request) for kind, request in messages]

    def _post(self, kind, request):
        call = Call(kind, self._network.clock())
        self._network.posted.append((kind, request))
        if self.failure is not None:
            call.error, call.done = self.failure, True
        elif self._network.silent:
            self._network.held.append((call, request))
        else:
            self._network.answer(call, request)
        return call

    def wait_any(self, calls, timeout):
        self._network.waits += 1
        if not any(call.done for call in calls):
            self._network.clock.now += timeout

    def close(self, grace=0.0):
        self.closed = True


class Network:
    """One server and how it is reached."""

    def __init__(self, clock: Clock, sessions_survive: bool = False, **limits):
        self.server = FakeServer(**limits)
        self.clock = clock
        self.sessions_survive = sessions_survive
        self.silent = False  # calls get no answer
        self.dead = False  # nobody listens
        self.refuse_opening = False  # there is no room for another session
        self.held: list = []
        self.posted: list = []  # (kind, request), as sent
        self.links: list[FakeLink] = []
        self.waits = self.infos = self.messages = 0

    def connect(self) -> FakeLink:
        self.links.append(FakeLink(self))
        return self.links[-1]

    def answer(self, call, request) -> None:
        handlers = {
            "open_session": self.server._open,
            "draft": self.server._draft,
            "close_session": self.server._close,
        }
        try:
            if call.kind == "open_session" and self.refuse_opening:
                raise Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "SESSIONS_FULL")
            call.response = handlers[call.kind](request)
        except Refusal as refusal:
            call.error = error_from_detail(refusal.detail)
        call.done = True

    def release(self) -> None:
        """The answers that were held back arrive."""
        self.silent = False
        held, self.held = self.held, []
        for call, request in held:
            self.answer(call, request)

    def kill(self) -> None:
        """The server dies: all it held is gone, and what was under way fails."""
        self.dead = True
        self.server.sessions.clear()
        for call, _ in self.held:
            call.error, call.done = unavailable(), True
        self.held = []
        for link in self.links:
            link.failure = unavailable()

    def revive(self) -> None:
        self.dead = self.silent = False

    def drafts(self) -> list:
        return [request for kind, request in self.posted if kind == "draft"]

    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.posted]


def unavailable() -> Unavailable:
    return Unavailable(grpc.StatusCode.UNAVAILABLE, "nobody listens")
