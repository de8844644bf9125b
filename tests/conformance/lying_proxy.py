"""A server that lies about one thing: passes every call on to a right one, and bends what it must.

Each lie is a class; `LIES` says which rule has to find it. Messages travel as bytes, so that what no
lie touches arrives as it was sent.
"""

import threading
from concurrent import futures

import grpc
from aerie_draft._proto import draft_pb2 as pb

_SERVICE = "aerie.v1.DraftService"
_REQUESTS = {
    "GetServerInfo": pb.GetServerInfoRequest,
    "OpenSession": pb.OpenSessionRequest,
    "Draft": pb.DraftRequest,
    "CloseSession": pb.CloseSessionRequest,
}
_RESPONSES = {
    "GetServerInfo": pb.GetServerInfoResponse,
    "OpenSession": pb.OpenSessionResponse,
    "Draft": pb.DraftResponse,
    "CloseSession": pb.CloseSessionResponse,
}
_LIMITS = dict(max_k=16, max_rows_per_call=256, max_message_bytes=2 << 20)


class Truth:
    """No lie. Hooks: a request on its way in, an answer or a refusal on its way out."""

    def __init__(self):
        self.ask = None  # ask(method, request): a call of the lie's own
        self.lengths = {}  # of each session, by what was answered

    def request(self, method, request, context):
        return request

    def response(self, method, request, response):
        return response

    def refusal(self, method, request, code, detail):
        """A response in place of the refusal, or None; may change the detail."""

    def health(self, answer):
        return answer

    def stream_answer(self, answer, context):
        return answer

    swallows_garbage = False
    holds_streams = False


class NoMaxK(Truth):
    def response(self, method, request, response):
        if method == "GetServerInfo":
            response.limits.ClearField("max_k")
        return response


class NotServing(Truth):
    def health(self, answer):
        return b"\x08\x02"


class NoLimitTold(Truth):
    def response(self, method, request, response):
        if method == "OpenSession":
            response.options.ClearField("max_k")
        return response


class FirstMismatchOnly(Truth):
    def refusal(self, method, request, code, detail):
        del detail.mismatches[1:]


class TakesAnyManifest(Truth):
    def request(self, method, request, context):
        if method == "OpenSession" and not request.manifest.captures:
            request.manifest.captures.extend(
                pb.Capture(kind=pb.CAPTURE_KIND_BOUNDARY, boundary=b) for b in (2, 15, 27)
            )
        return request


class OverridesOptions(Truth):
    def request(self, method, request, context):
        if method == "OpenSession" and request.options.HasField("tree"):
            request.options.adaptive_k = False
        return request


class PositionsOneOff(Truth):
    def response(self, method, request, response):
        if method == "Draft":
            response.tree.positions[:] = [p - 1 for p in response.tree.positions]
        return response


class DraftsUnasked(Truth):
    def request(self, method, request, context):
        if method == "Draft" and request.k == 0:
            request.k = 1
        return request


class ForgetsMaxK(Truth):
    def request(self, method, request, context):
        if method == "OpenSession":
            self.asked = request.options.max_k
            request.options.ClearField("max_k")
        return request

    def response(self, method, request, response):
        if method == "OpenSession" and self.asked:
            response.options.max_k = self.asked
        return response


class LinksOneOff(Truth):
    def response(self, method, request, response):
        if method == "Draft":
            response.tree.first_child[:] = [n - 1 for n in response.tree.first_child]
        return response


class OtherProbs(Truth):
    def response(self, method, request, response):
        if method == "Draft":
            response.tree.chosen_probs[:] = [p / 2 for p in response.tree.chosen_probs]
        return response


class IgnoresSeeds(Truth):
    """Two sessions of one seed draw differently."""

    def __init__(self):
        super().__init__()
        self._opened = 0

    def request(self, method, request, context):
        if method == "OpenSession" and request.options.HasField("sampling"):
            self._opened += 1
            request.options.sampling.seed = self._opened
        return request


class CountsOneLess(Truth):
    def response(self, method, request, response):
        if method == "Draft" and response.accepted:
            response.accepted -= 1
        return response


class PadsBytes(Truth):
    def request(self, method, request, context):
        if method == "Draft":
            right = len(request.token_ids) * 3 * 576 * 2
            data = request.hidden_states.data
            request.hidden_states.data = data[:right].ljust(right, b"\0")
        return request


class ZeroesNaN(Truth):
    def request(self, method, request, context):
        if method == "Draft":
            data = bytearray(request.hidden_states.data)
            for i in range(1, len(data), 2):
                if data[i] & 0x7F == 0x7F and data[i - 1] & 0x80:
                    data[i] = 0
            request.hidden_states.data = bytes(data)
        return request


class ClampsTokens(Truth):
    def request(self, method, request, context):
        for field in ("token_ids", "final_token_ids"):
            if method in ("Draft", "CloseSession") and hasattr(request, field):
                tokens = getattr(request, field)
                tokens[:] = [min(t, 49151) for t in tokens]
        return request


class ClampsK(Truth):
    def request(self, method, request, context):
        if method == "Draft":
            request.k = min(request.k, _LIMITS["max_k"])
        return request


class NamesAnotherRow(Truth):
    def refusal(self, method, request, code, detail):
        if detail.reason == "BASE_LENGTH_AHEAD":
            detail.resend_from += 1


class CutsRows(Truth):
    def request(self, method, request, context):
        if method == "Draft" and len(request.token_ids) > _LIMITS["max_rows_per_call"]:
            del request.token_ids[1:]
            request.hidden_states.data = request.hidden_states.data[: 3 * 576 * 2]
        return request


class CutsMessages(Truth):
    def request(self, method, request, context):
        if method == "Draft" and request.ByteSize() > _LIMITS["max_message_bytes"]:
            request.hidden_states.data = request.hidden_states.data[: 3 * 576 * 2]
        return request


class RefusalsDropRows(Truth):
    def refusal(self, method, request, code, detail):
        length = self.lengths.get(request.session_id) if method == "Draft" else None
        if length and code is grpc.StatusCode.INVALID_ARGUMENT:
            data = b"\0" * 3 * 576 * 2
            call = pb.DraftRequest(session_id=request.session_id, base_length=length - 1, token_ids=[5])
            call.hidden_states.dtype = 3
            call.hidden_states.data = data
            self.ask("Draft", call)


class AnotherCodeInTheDetail(Truth):
    def refusal(self, method, request, code, detail):
        detail.code = 2


class RenumbersCalls(Truth):
    def __init__(self):
        super().__init__()
        self._seq = 100

    def request(self, method, request, context):
        if method == "Draft" and request.seq:
            self.told = request.seq
            self._seq += 1
            request.seq = self._seq
        return request

    def response(self, method, request, response):
        if method == "Draft" and request.seq:
            response.seq = self.told
        return response


class ForgetsNumbers(Truth):
    def __init__(self):
        super().__init__()
        self._last = {}

    def request(self, method, request, context):
        if method == "Draft":
            if request.seq < self._last.get(request.session_id, 0):
                request.seq = 0
            self._last[request.session_id] = max(
                request.seq, self._last.get(request.session_id, 0)
            )
        return request


class KeepsWhatWasTakenBack(Truth):
    def request(self, method, request, context):
        if method == "Draft":
            length = self.lengths.get(request.session_id, 0)
            self._claim = request.base_length + len(request.token_ids)
            if request.base_length < length:
                request.base_length = length
        return request

    def response(self, method, request, response):
        if method == "Draft":
            response.length = self._claim
        return response


def _blank(request):
    request.hidden_states.data = b"\0" * len(request.hidden_states.data)


class KeepsGuesses(Truth):
    """Rows behind a rejected draft are not computed from what was sent."""

    def __init__(self):
        super().__init__()
        self._proposals = {}

    def request(self, method, request, context):
        if method == "Draft":
            proposal = self._proposals.get(request.session_id, [])
            if proposal and list(request.token_ids)[: len(proposal)] != proposal:
                _blank(request)
        return request

    def response(self, method, request, response):
        if method == "Draft" and request.session_id:
            self._proposals[request.session_id] = list(response.tree.token_ids)
        return response


class MixesSessions(Truth):
    """A session's rows get lost when another one was served in between."""

    def __init__(self):
        super().__init__()
        self._last = None

    def request(self, method, request, context):
        if method == "Draft":
            if self._last not in (None, request.session_id):
                _blank(request)
            self._last = request.session_id
        elif method == "CloseSession":
            self._last = None
        return request


class ClosesAnything(Truth):
    def refusal(self, method, request, code, detail):
        if method == "CloseSession" and code is grpc.StatusCode.NOT_FOUND:
            return pb.CloseSessionResponse()
        return None


class CountsProposalsTwice(Truth):
    def response(self, method, request, response):
        if method == "CloseSession":
            response.acceptance.num_spec_steps *= 2
        return response


class BlanksStateless(Truth):
    def request(self, method, request, context):
        if method == "Draft" and not request.session_id:
            _blank(request)
        return request


class ForksNothing(Truth):
    def request(self, method, request, context):
        if method == "OpenSession" and request.HasField("fork"):
            self.length = request.fork.length
            request.ClearField("fork")
        return request


class StartsAtZero(Truth):
    def request(self, method, request, context):
        if method == "OpenSession":
            request.start = 0
        return request


class NoReason(Truth):
    def response(self, method, request, response):
        if method == "Draft":
            response.no_draft_reason = 0
        return response


class EndsSessionsLate(Truth):
    """A call that came too late takes its session with it."""

    def refusal(self, method, request, code, detail):
        if method == "Draft" and code in (
            grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED
        ):
            self.ask("CloseSession", pb.CloseSessionRequest(session_id=request.session_id))


class RefusesUnknownFields(Truth):
    def request(self, method, request, context):
        if request.SerializeToString().endswith(b"\xc0\x3e\x01"):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "what is that?")
        return request


class ErrorsEndStreams(Truth):
    def stream_answer(self, answer, context):
        if answer.HasField("error"):
            context.abort(grpc.StatusCode.INTERNAL, "one call failed")
        return answer


class AnswersTheWrongId(Truth):
    def stream_answer(self, answer, context):
        if answer.HasField("draft"):
            answer.id += 10
        return answer


class KeepsStreamSessions(Truth):
    holds_streams = True


class EndsAtGarbage(Truth):
    swallows_garbage = True


class EvictsWithoutARow(Truth):
    def refusal(self, method, request, code, detail):
        if detail.reason == "EVICTED":
            detail.ClearField("resend_from")


class FullForever(Truth):
    def refusal(self, method, request, code, detail):
        detail.ClearField("retry_after")


class LeaseIsNoEnd(Truth):
    def refusal(self, method, request, code, detail):
        if code is grpc.StatusCode.NOT_FOUND and method == "Draft":
            return pb.DraftResponse(length=request.base_length + len(request.token_ids))
        return None


# Lie -> the rules that must find it, then those that may find it too.
LIES = {
    NoMaxK: ({"S-INFO"}, {"S-OPEN", "S-PROPOSAL", "S-K-RANGE", "S-REFUSAL-UNCHANGED"}),
    NotServing: ({"S-HEALTH"}, set()),
    NoLimitTold: ({"S-OPEN"}, {"S-MAX-K"}),
    FirstMismatchOnly: ({"S-MANIFEST-MISMATCH"}, set()),
    TakesAnyManifest: ({"S-MANIFEST-INVALID"}, set()),
    OverridesOptions: ({"S-OPTIONS"}, set()),
    PositionsOneOff: ({"S-PROPOSAL"}, {"S-START", "S-TREE", "S-SAMPLING"}),
    DraftsUnasked: ({"S-K-ZERO"}, set()),
    ForgetsMaxK: ({"S-MAX-K"}, set()),
    LinksOneOff: ({"S-TREE"}, set()),
    OtherProbs: ({"S-SAMPLING"}, set()),
    IgnoresSeeds: ({"S-SAMPLING"}, set()),
    CountsOneLess: ({"S-ACCEPTED"}, {"S-CLOSE", "S-TREE"}),
    PadsBytes: ({"S-BYTE-COUNT"}, set()),
    ZeroesNaN: ({"S-NON-FINITE"}, set()),
    ClampsTokens: ({"S-VOCAB"}, set()),
    ClampsK: ({"S-K-RANGE"}, set()),
    NamesAnotherRow: ({"S-BASE-AHEAD"}, set()),
    CutsRows: ({"S-ROWS-LIMIT"}, set()),
    CutsMessages: ({"S-MESSAGE-LIMIT"}, set()),
    RefusalsDropRows: ({"S-REFUSAL-UNCHANGED"}, set()),
    AnotherCodeInTheDetail: ({"S-ERROR-DETAIL"}, set()),
    RenumbersCalls: ({"S-SEQ-REPEAT"}, {"S-SEQ-BEHIND"}),
    ForgetsNumbers: ({"S-SEQ-BEHIND"}, set()),
    KeepsWhatWasTakenBack: ({"S-ROLLBACK"}, {"S-SEQ-REPEAT", "S-DEADLINE", "S-CONTEXT-LIMIT"}),
    KeepsGuesses: ({"S-REPLAY"}, {"S-FORK", "S-DEADLINE"}),
    MixesSessions: ({"S-ISOLATION"}, {"S-FORK", "S-STATELESS", "S-K-ZERO", "S-SEQ-REPEAT",
                                      "S-REFUSAL-UNCHANGED", "S-DEADLINE", "S-SAMPLING",
                                      "S-REPLAY", "S-ROLLBACK", "S-EVICTED"}),
    ClosesAnything: ({"S-SESSION-UNKNOWN"}, set()),
    CountsProposalsTwice: ({"S-CLOSE"}, set()),
    BlanksStateless: ({"S-STATELESS"}, set()),
    ForksNothing: ({"S-FORK"}, {"S-OPTIONS"}),
    StartsAtZero: ({"S-START"}, {"S-CONTEXT-LIMIT", "S-OPTIONS"}),
    NoReason: ({"S-CONTEXT-LIMIT"}, {"S-K-ZERO"}),
    EndsSessionsLate: ({"S-DEADLINE"}, set()),
    RefusesUnknownFields: ({"S-UNKNOWN-FIELDS"}, set()),
    ErrorsEndStreams: ({"S-STREAM"}, set()),
    AnswersTheWrongId: ({"S-STREAM"}, set()),
    KeepsStreamSessions: ({"S-STREAM-SESSIONS"}, set()),
    EndsAtGarbage: ({"S-STREAM-GARBAGE"}, set()),
    EvictsWithoutARow: ({"S-EVICTED"}, set()),
    FullForever: ({"S-SESSION-LIMIT"}, set()),
    LeaseIsNoEnd: ({"S-LEASE"}, set()),
}


class LyingProxy(grpc.GenericRpcHandler):
    """A context manager; `address` is where it listens."""

    def __init__(self, target, lie):
        self._lie = lie
        self._channel = grpc.insecure_channel(target, options=[
            ("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1),
            ("grpc.use_local_subchannel_pool", 1),
        ])
        lie.ask = lambda method, request: self._forward(method, request.SerializeToString(), 60)
        self._over = threading.Event()
        self._server = grpc.server(
            futures.ThreadPoolExecutor(24), handlers=[self],
            options=[("grpc.max_receive_message_length", -1), ("grpc.so_reuseport", 0)],
        )
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    def __enter__(self):
        self._server.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._server.stop(grace=None).wait()
        self._channel.close()

    def service(self, details):
        name = details.method.rpartition("/")[2]
        if name == "DraftStream":
            return grpc.stream_stream_rpc_method_handler(self._stream)
        return grpc.unary_unary_rpc_method_handler(
            lambda data, context: self._unary(details.method, name, data, context)
        )

    def _forward(self, method, data, timeout, path=""):
        call = self._channel.unary_unary(path or f"/{_SERVICE}/{method}")
        return call(data, timeout=timeout)

    def _unary(self, path, name, data, context):
        timeout = min(context.time_remaining() or 60, 60)
        if name not in _REQUESTS:
            return self._lie.health(self._forward(name, data, timeout, path))
        request = self._lie.request(name, _REQUESTS[name].FromString(data), context)
        try:
            answer = self._forward(name, request.SerializeToString(), timeout)
        except grpc.RpcError as error:
            return self._refuse(name, request, error, context)
        response = _RESPONSES[name].FromString(answer)
        if name == "Draft" and request.session_id:
            self._lie.lengths[request.session_id] = response.length
        return self._lie.response(name, request, response).SerializeToString()

    def _refuse(self, name, request, error, context):
        status, detail = pb.StatusDetails(), pb.ErrorDetail()
        for key, value in error.trailing_metadata() or ():
            if key == "grpc-status-details-bin":
                status = pb.StatusDetails.FromString(value)
                status.details[0].Unpack(detail)
        instead = self._lie.refusal(name, request, error.code(), detail)
        if instead is not None:
            return instead.SerializeToString()
        del status.details[:]
        status.details.add().Pack(detail)
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        context.abort(error.code(), error.details())

    def _stream(self, requests, context):
        def pass_on():
            for data in requests:
                if self._lie.swallows_garbage:
                    try:
                        pb.DraftStreamRequest.FromString(data)
                    except Exception:
                        return
                yield data
            if self._lie.holds_streams:
                self._over.wait()

        upstream = self._channel.stream_stream(f"/{_SERVICE}/DraftStream")(pass_on(), timeout=60)
        if not self._lie.holds_streams:
            context.add_callback(upstream.cancel)
        try:
            for data in upstream:
                answer = pb.DraftStreamResponse.FromString(data)
                yield self._lie.stream_answer(answer, context).SerializeToString()
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())
