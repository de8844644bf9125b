"""A worker that plays a script on a server and keeps the books: what every counter of the server must say.

The rows are noise. Which draft tokens the target "keeps" is the script's choice, so every count is known beforehand.
"""

import collections
import dataclasses
import time

import grpc
import numpy as np
from aerie_draft import DraftClient, DType, Fork, Manifest, SessionOptions, captures_at
from aerie_draft.errors import AerieError

VOCABULARY = 49152
MANIFEST = Manifest("SmolLM2-135M-Instruct", num_layers=30, hidden_size=576, vocab_size=VOCABULARY,
                    captures=captures_at((2, 15, 27)), dtype=DType.BFLOAT16)
ROW_BYTES = MANIFEST.row_width * DType.BFLOAT16.size
NOISE = np.random.default_rng(7).standard_normal((2048, MANIFEST.row_width)).astype(np.float32)


@dataclasses.dataclass
class Rpc:
    method: str
    code: str
    received: int  # bytes of the request
    sent: int  # bytes of the response; 0 when there was none
    seconds: float  # as the client saw it


@dataclasses.dataclass
class Request:
    """One session with a judged draft."""

    steps: int = 0
    proposed: int = 0
    accepted: int = 0
    completion: int = 0
    # The server's time from the commit of the first draft's call to the last commit lies between these.
    shortest: float = 0.0
    longest: float = 0.0


class Books:
    """What happened, by the names that the server uses for it."""

    def __init__(self):
        self.judged = []  # (tokens, levels, accepted)
        self.made = []  # (tokens, levels) of every draft
        self.mismatches = self.committed = self.rows = 0
        self.unreported = collections.Counter()
        self.skipped = collections.Counter()
        self.rejected = collections.Counter()
        self.ended = collections.Counter()
        self.evictions = self.evicted_rows = 0
        self.phases = collections.defaultdict(list)  # seconds, as the server's answers told
        self.requests = []
        self.rpcs = []

    def reached(self, position):
        return sum(levels > position for _, levels, _ in self.judged)

    def kept_at(self, position):
        return sum(accepted > position for _, _, accepted in self.judged)

    @property
    def drafts(self):
        return len(self.judged)

    @property
    def proposed(self):
        return sum(tokens for tokens, _, _ in self.judged)

    @property
    def accepted(self):
        return sum(accepted for _, _, accepted in self.judged)


class Worker:
    """Sessions over one connection, all in one thread. Every call goes into the books."""

    def __init__(self, address, books):
        self.books = books
        self.client = DraftClient(address, timeout=60.0)
        transport = self.client._transport
        for name, method in (("server_info", "GetServerInfo"), ("open_session", "OpenSession"), ("draft", "Draft"),
                             ("close_session", "CloseSession")):
            setattr(transport, name, self._noting(getattr(transport, name), method))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()

    def _noting(self, call, method):
        def noted(request, timeout, *metadata):
            begun = time.perf_counter()
            code, sent = grpc.StatusCode.OK, 0
            try:
                response = call(request, timeout, *metadata)
                sent = response.ByteSize()
                return response
            except AerieError as error:
                code = error.code
                raise
            finally:
                spelt = "OK" if code is grpc.StatusCode.OK else code.name.title().replace("_", "")
                self.books.rpcs.append(
                    Rpc(method, spelt, request.ByteSize(), sent, time.perf_counter() - begun))
        return noted

    def open(self, options=SessionOptions(), **more):
        return Sequence(self.client.open_session(MANIFEST, options, **more), self.books)

    def refused(self, reason, call, kind):
        """A call that must fail with the exception `kind`; the server counts it under `reason`, None: nowhere."""
        try:
            call()
        except kind:
            if reason:
                self.books.rejected[reason] += 1
            return
        raise AssertionError(f"a call was served that should have been refused with {kind.__name__}")


class Sequence:
    """One session and what its worker knows of it."""

    def __init__(self, session, books):
        self.session, self.books = session, books
        self.length = session.length
        self.proposal = None
        self.request = Request()
        self.drafted = False

    def prompt(self, rows, k):
        """Sends so many rows in one call and asks for k tokens."""
        self._draft(self.length, [(37 * i + 11) % VOCABULARY for i in range(rows)], k)

    def keep(self, accepted, k, says=None):
        """The target kept so many tokens of the last draft and added one of its own; then asks for k tokens. `says`:
        what the worker reports."""
        before = self.length
        tokens = self._judge(accepted, says)
        self._draft(before, tokens, k, says)

    def go_back(self, rows, k):
        """Replaces the newest rows by others; the last draft is lost."""
        assert self.proposal is not None
        self.books.unreported["rollback"] += 1
        self.proposal = None
        self._draft(self.length - rows, [(53 * i + 5) % VOCABULARY for i in range(rows)], k)

    def close(self, accepted=None):
        """Ends it; with `accepted` the closing call brings the tokens that judge the last draft."""
        final = [] if accepted is None else self._judge(accepted, None)
        if self.proposal is not None:
            self.books.unreported["closed"] += 1
        before = time.perf_counter()
        self.session.close(final)
        self.books.ended["closed"] += 1
        self._note_time(before, bool(final))
        if self.request.steps:
            self.books.requests.append(self.request)

    def fork(self, worker, length):
        return worker.open(fork=Fork(self.session.session_id, length))

    def _judge(self, accepted, says):
        proposal, self.proposal = self.proposal, None
        path = self._path(proposal, accepted)
        assert len(path) == accepted, f"the draft has no path of {accepted} tokens"
        # Nothing that the draft has at this place, or it would count as accepted.
        own = next(t for t in range(5, VOCABULARY) if t not in proposal.tokens)
        self.books.judged.append((len(proposal.tokens), max(proposal.depths), accepted))
        self.books.mismatches += says is not None and says != accepted
        self.books.committed += accepted + 1
        self.request.steps += 1
        self.request.proposed += len(proposal.tokens)
        self.request.accepted += accepted
        self.request.completion += accepted + 1
        return [*path, own]

    @staticmethod
    def _path(proposal, accepted):
        """Tokens of a path of that length from the root."""
        node = next((i for i, depth in enumerate(proposal.depths) if depth == accepted), None) if accepted else None
        path = []
        while node is not None:
            path.insert(0, proposal.tokens[node])
            node = proposal.parents[node] - 1 if proposal.parents[node] else None
        return path

    def _draft(self, base, tokens, k, says=None):
        books, before = self.books, time.perf_counter()
        proposal = self.session.draft(base, tokens, NOISE[:len(tokens)], k, accepted=says)
        assert proposal.calls == 1
        books.phases["queue"].append(proposal.timing.queue)
        books.phases["total"].append(proposal.timing.total)
        if proposal.no_draft_reason == "CONTEXT_LIMIT":
            books.skipped["context_limit"] += 1
            return
        self.length = base + len(tokens)
        books.rows += len(tokens)
        books.phases["extend"].append(proposal.timing.extend)
        self._note_time(before, True)
        if k == 0:
            books.skipped["not_asked"] += 1
            return
        books.made.append((len(proposal.tokens), max(proposal.depths)))
        if len(proposal.tokens) > 1:
            books.phases["step"].append(proposal.timing.step)
        self.proposal, self.drafted = proposal, True

    def _note_time(self, before, commits):
        after = time.perf_counter()
        if commits and not self.drafted:
            self.first = (before, after)
        elif commits:
            self.request.shortest = max(0.0, before - self.first[1])
            self.request.longest = after - self.first[0]
