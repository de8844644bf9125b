"""An engine of toy requests, a drafter for them, and a server behind the test's own network."""

import dataclasses

import aerie_draft
import numpy as np
from aerie_draft import Availability
from aerie_draft.vllm.admission import AdmissionError, Plan
from aerie_draft.vllm.connection import Connection
from aerie_draft.vllm.drafter import BatchDrafter
from aerie_draft.vllm.request_state import NewRows
from aerie_draft.vllm.settings import Settings
from conftest import make_manifest
from fake_link import Clock, Network
from fake_server import Refusal

PLAN = Plan(make_manifest(), k=4, max_model_len=64, aux_boundaries=(1, 2, 3), sources=(0, 1, 2))
DEADLINE = 0.5


# The engine verified what the last round drafted.
AS_DRAFTED = ("as drafted",)


def engine_round(drafter, news, drafts):
    """One round of the drafter; `drafts` by request, of the last round, and then of this one."""
    news = [
        dataclasses.replace(new, verified=drafts.get(new.request_id, ()))
        if new.verified is AS_DRAFTED
        else new
        for new in news
    ]
    made = drafter.round(news)
    drafts.update({new.request_id: tuple(tokens) for new, tokens in zip(news, made, strict=True)})
    return made


class Request:
    """One request as the engine runs it: row i holds the number 8 * `mark` + i everywhere."""

    def __init__(self, name, mark=0):
        self.name = name
        self.mark = mark
        self.length = 0  # rows so far
        self.tokens = []
        self.new = True

    def rows(self, tokens, k=2, verified=AS_DRAFTED, accepted=0, first=None, **fields):
        """The next rows; `verified` None: nothing was sampled."""
        first = self.length if first is None else first
        self.tokens[first:] = tokens
        self.length = first + len(tokens)
        numbers = 8 * self.mark + np.arange(first, self.length, dtype=np.float32)
        encoded = aerie_draft.encode_rows(
            np.repeat(numbers[:, None], 24, axis=1), aerie_draft.DType.BFLOAT16
        )
        fields.setdefault("fresh", self.new)
        self.new = False
        return NewRows(self.name, first, list(tokens), encoded, k, verified, accepted, **fields)


class World:
    def __init__(self, sessions_survive=False, **overrides):
        settings = {"deadline": DEADLINE, **overrides.pop("settings", {})}
        self.clock = Clock()
        self.network = Network(self.clock, sessions_survive, **overrides)
        self.server = self.network.server
        self.settings = Settings(address="fake", **settings)
        self.wrong = None
        self.drafts = {}
        self.availability = Availability(first_wait=1.0, longest_wait=4.0, clock=self.clock)
        connection = Connection(
            PLAN, self.settings, self.network.connect, self.check, self.availability, self.clock
        )
        self.drafter = BatchDrafter(PLAN, self.settings, connection, self.clock)

    def check(self, info):
        if self.wrong:
            raise AdmissionError(self.wrong)

    def round(self, *news):
        self.network.posted.clear()
        return engine_round(self.drafter, news, self.drafts)

    def held(self, number=-1):
        """Rows of a session as the server holds them, by their number."""
        sessions = list(self.server.sessions.values())
        return sessions[number].array()[:, 0].tolist()

    def refuse(self, code, reason, times=99, **fields):
        left = [times]

        def raise_refusal(request):
            if left[0] > 0:
                left[0] -= 1
                raise Refusal(code, reason, **fields)

        self.server.before_draft = raise_refusal
