"""A strict worker's calls to the server under test, and the list of what it checks.

No client library stands between: it would mend what is to be seen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import grpc

from aerie_draft._proto import draft_pb2, draft_pb2_grpc
from aerie_draft.conformance.report import Evidence
from aerie_draft.dtypes import PLAIN_DTYPES, DType
from aerie_draft.security import Security, open_channel

PATIENCE = 60.0  # seconds of a call that is to be answered
Code = grpc.StatusCode


class Broken(Exception):
    """A rule is broken: what was seen, what was expected, what to do."""

    def __init__(self, seen: str, expected: str, remedy: str):
        super().__init__(seen)
        self.seen, self.expected, self.remedy = seen, expected, remedy


class NotSeen(Exception):
    """A rule could not be tried here."""


class Refused(Exception):
    """A call that failed, with its ErrorDetail where one came."""

    def __init__(self, code: grpc.StatusCode, message: str, detail: draft_pb2.ErrorDetail | None):
        super().__init__(f"{code.name}: {message}")
        self.code, self.message, self.detail = code, message, detail
        self.reason = detail.reason if detail is not None else ""


def detail_of(error: grpc.RpcError) -> draft_pb2.ErrorDetail | None:
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for packed in draft_pb2.StatusDetails.FromString(value).details:
                detail = draft_pb2.ErrorDetail()
                if packed.Unpack(detail):
                    return detail
    return None


class Probe:
    """One server under test. The calls of one thread."""

    def __init__(
        self,
        address: str,
        evidence: Evidence,
        drafter: str = "",
        security: Security | None = None,
    ):
        self.address = address
        self.channel = open_channel(
            address,
            options=[
                ("grpc.max_send_message_length", -1),
                ("grpc.max_receive_message_length", -1),
                ("grpc.use_local_subchannel_pool", 1),
            ],
            security=security,
        )
        self.stub = draft_pb2_grpc.DraftServiceStub(self.channel)
        self._evidence = evidence
        self.where = ""  # the rule under test
        self._open: set[str] = set()  # sessions
        self.info = self.call("GetServerInfo", draft_pb2.GetServerInfoRequest())
        fitting = [d for d in self.info.drafters if not drafter or d.name == drafter]
        if not fitting:
            raise Broken(
                f"drafters {[d.name for d in self.info.drafters]}",
                "one to test",
                "name one that is there with --drafter",
            )
        self.drafter = fitting[0]
        self.limits = self.info.limits
        known = [d for d in PLAIN_DTYPES if d.value in self.info.dtypes]
        self.dtype = DType.BFLOAT16 if DType.BFLOAT16 in known or not known else known[0]

    def close(self) -> None:
        self.channel.close()

    @property
    def width(self) -> int:
        return len(self.drafter.captures) * self.drafter.target_hidden_size

    @property
    def k(self) -> int:
        """A usual number of tokens to ask for."""
        return min(4, max(self.limits.max_k, 1))

    def manifest(self, **changes) -> draft_pb2.Manifest:
        fields = dict(
            target_id="conformance",
            num_layers=self.drafter.target_num_layers,
            hidden_size=self.drafter.target_hidden_size,
            vocab_size=self.drafter.vocab_size,
            captures=self.drafter.captures,
            dtype=self.dtype.value,
            drafter=self.drafter.name if len(self.info.drafters) > 1 else "",
        )
        return draft_pb2.Manifest(**{**fields, **changes})

    def call(self, method: str, request, timeout: float = PATIENCE, metadata=None):
        """The answer, or Refused."""
        try:
            return getattr(self.stub, method)(request, timeout=timeout, metadata=metadata)
        except grpc.RpcError as error:
            detail = detail_of(error)
            self._note_detail(method, error.code(), error.details() or "", detail)
            raise Refused(error.code(), error.details() or "", detail) from None

    def _note_detail(self, method, code, message, detail) -> None:
        # These come from this side or from the way as well.
        if code in (Code.DEADLINE_EXCEEDED, Code.CANCELLED, Code.UNAVAILABLE, Code.UNIMPLEMENTED):
            return
        self._evidence.saw("S-ERROR-DETAIL")
        if detail is None or detail.code != code.value[0] or not detail.reason or not message:
            told = "none" if detail is None else f"code {detail.code}, reason {detail.reason!r}"
            self._evidence.violated(
                "S-ERROR-DETAIL",
                self.where,
                f"{method} was refused with {code.name}, message {message!r} and detail {told}",
                "a message, and in grpc-status-details-bin an ErrorDetail with that code and a "
                "reason",
                "attach the detail to every refusal",
            )

    def refused(self, method: str, request, code, what: str, reason: str = "") -> Refused:
        """The refusal that `request` has to get."""
        try:
            self.call(method, request)
        except Refused as refused:
            if refused.code is not code or (reason and refused.reason != reason):
                raise Broken(
                    f"{what} got {refused.code.name} {refused.reason}",
                    f"{code.name} {reason}".strip(),
                    "answer with the code of the contract",
                ) from None
            return refused
        raise Broken(
            f"{what} was served", code.name, "check a call completely before anything changes"
        )

    def open(self, **fields) -> draft_pb2.OpenSessionResponse:
        fields.setdefault("manifest", self.manifest())
        opened = self.call("OpenSession", draft_pb2.OpenSessionRequest(**fields))
        self._open.add(opened.session_id)
        return opened

    def end(self, session: str, final_tokens: Sequence[int] = ()) -> draft_pb2.CloseSessionResponse:
        closed = self.call(
            "CloseSession",
            draft_pb2.CloseSessionRequest(session_id=session, final_token_ids=final_tokens),
        )
        self._open.discard(session)
        return closed

    def clear(self) -> None:
        """Closes what a check has left open, which one that found something does."""
        for session in self._open:
            try:
                self.stub.CloseSession(
                    draft_pb2.CloseSessionRequest(session_id=session), timeout=PATIENCE
                )
            except grpc.RpcError:
                pass  # It may be gone; else its lease ends it.
        self._open.clear()

    def request(
        self, session: str, base: int, tokens: Sequence[int], rows: bytes, k: int, seq: int = 0
    ) -> draft_pb2.DraftRequest:
        request = draft_pb2.DraftRequest(base_length=base, token_ids=tokens, k=k, seq=seq)
        if session:
            request.session_id = session
        else:
            request.manifest.CopyFrom(self.manifest())
        request.hidden_states.dtype = self.dtype.value
        request.hidden_states.data = rows
        return request

    def draft(self, *args, timeout: float = PATIENCE, **kwargs) -> draft_pb2.DraftResponse:
        return self.call("Draft", self.request(*args, **kwargs), timeout)

    def health(self, service: str) -> int:
        """1: SERVING. A message of one field each, so no stubs of that protocol are needed."""
        name = service.encode()
        request = b"\x0a" + bytes([len(name)]) + name if name else b""
        check = self.channel.unary_unary("/grpc.health.v1.Health/Check")
        try:
            answer = check(request, timeout=PATIENCE)
        except grpc.RpcError as error:
            raise Refused(error.code(), error.details() or "", None) from None
        return answer[1] if len(answer) == 2 and answer[0] == 0x08 else 0


@dataclasses.dataclass(frozen=True)
class ServerCheck:
    rule: str
    run: Callable[[Probe], None]
    intrusive: bool = False


class CheckList:
    """Checks in the order in which they were written down."""

    def __init__(self):
        self.checks: list[ServerCheck] = []

    def add(self, rule: str, intrusive: bool = False):
        def wrap(run):
            self.checks.append(ServerCheck(rule, run, intrusive))
            return run

        return wrap
