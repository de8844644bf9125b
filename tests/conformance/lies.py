"""Servers that are wrong in one way each, as lies of a proxy before a right one.

`LIES` says which rule has to find each of them.
"""

import grpc
from aerie_draft._proto import draft_pb2 as pb
from lying_proxy import Truth

# As the server of the tests is started.
LIMITS = dict(max_k=16, max_rows_per_call=256, max_message_bytes=2 << 20)
VOCAB = 49152
ROW_BYTES = 3 * 576 * 2


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
            right = len(request.token_ids) * ROW_BYTES
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
                tokens[:] = [min(t, VOCAB - 1) for t in tokens]
        return request


class ClampsK(Truth):
    def request(self, method, request, context):
        if method == "Draft":
            request.k = min(request.k, LIMITS["max_k"])
        return request


class NamesAnotherRow(Truth):
    def refusal(self, method, request, code, detail):
        if detail.reason == "BASE_LENGTH_AHEAD":
            detail.resend_from += 1


class CutsRows(Truth):
    def request(self, method, request, context):
        if method == "Draft" and len(request.token_ids) > LIMITS["max_rows_per_call"]:
            del request.token_ids[1:]
            request.hidden_states.data = request.hidden_states.data[:ROW_BYTES]
        return request


class CutsMessages(Truth):
    def request(self, method, request, context):
        if method == "Draft" and request.ByteSize() > LIMITS["max_message_bytes"]:
            request.hidden_states.data = request.hidden_states.data[:ROW_BYTES]
        return request


class ReadsOneSlotAlone(Truth):
    def request(self, method, request, context):
        if method == "Draft" and request.hidden_states.HasField("shared"):
            self.first = getattr(self, "first", None) or request.hidden_states.shared
            request.hidden_states.shared.CopyFrom(self.first)
        return request


class RefusalsDropRows(Truth):
    def refusal(self, method, request, code, detail):
        length = self.lengths.get(request.session_id) if method == "Draft" else None
        if length and code is grpc.StatusCode.INVALID_ARGUMENT:
            data = b"\0" * ROW_BYTES
            call = pb.DraftRequest(
                session_id=request.session_id, base_length=length - 1, token_ids=[5]
            )
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
            self._last[request.session_id] = max(request.seq, self._last.get(request.session_id, 0))
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


def blank(request):
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
                blank(request)
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
                blank(request)
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
            blank(request)
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


class EndsSessionsInAHurry(Truth):
    """A call with little time takes its session with it."""

    def request(self, method, request, context):
        if method == "Draft" and context.time_remaining() < 1.0:
            try:
                self.ask("CloseSession", pb.CloseSessionRequest(session_id=request.session_id))
            except grpc.RpcError:
                pass  # an earlier one took it
        return request


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


class TakesEmptyBatches(Truth):
    def stream_answer(self, answer, context):
        if answer.error.message.startswith("a batch of 0"):
            answer.close_session.SetInParent()
        return answer


class AnswersOneOfABatch(Truth):
    """All answers to a batch come under the id of its first request."""

    def stream_answer(self, answer, context):
        answer.id = min(answer.id, 1001)
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
    PadsBytes: ({"S-BYTE-COUNT"}, {"S-MESSAGE-LIMIT"}),
    ZeroesNaN: ({"S-NON-FINITE"}, set()),
    ClampsTokens: ({"S-VOCAB"}, set()),
    ClampsK: ({"S-K-RANGE"}, set()),
    NamesAnotherRow: ({"S-BASE-AHEAD"}, set()),
    CutsRows: ({"S-ROWS-LIMIT"}, set()),
    CutsMessages: ({"S-MESSAGE-LIMIT"}, set()),
    ReadsOneSlotAlone: ({"S-SHARED-MEMORY"}, set()),
    RefusalsDropRows: ({"S-REFUSAL-UNCHANGED"}, set()),
    AnotherCodeInTheDetail: ({"S-ERROR-DETAIL"}, set()),
    RenumbersCalls: ({"S-SEQ-REPEAT"}, {"S-SEQ-BEHIND"}),
    ForgetsNumbers: ({"S-SEQ-BEHIND"}, set()),
    KeepsWhatWasTakenBack: (
        {"S-ROLLBACK"},
        {
            "S-SEQ-REPEAT",
            "S-DEADLINE",
            "S-CONTEXT-LIMIT",
            "S-START",
            "S-EVICTED",
            "S-ISOLATION",
        },
    ),
    KeepsGuesses: (
        {"S-REPLAY"},
        {"S-FORK", "S-DEADLINE", "S-ROLLBACK", "S-NON-FINITE", "S-EVICTED"},
    ),
    MixesSessions: (
        {"S-ISOLATION"},
        {
            "S-FORK",
            "S-STATELESS",
            "S-K-ZERO",
            "S-SEQ-REPEAT",
            "S-REFUSAL-UNCHANGED",
            "S-DEADLINE",
            "S-SAMPLING",
            "S-REPLAY",
            "S-ROLLBACK",
            "S-EVICTED",
            "S-UNKNOWN-FIELDS",
            "S-STREAM",
        },
    ),
    ClosesAnything: ({"S-SESSION-UNKNOWN"}, set()),
    CountsProposalsTwice: ({"S-CLOSE"}, set()),
    BlanksStateless: ({"S-STATELESS"}, set()),
    ForksNothing: ({"S-FORK"}, {"S-OPTIONS"}),
    StartsAtZero: ({"S-START"}, {"S-CONTEXT-LIMIT", "S-OPTIONS"}),
    NoReason: ({"S-CONTEXT-LIMIT"}, {"S-K-ZERO"}),
    EndsSessionsInAHurry: ({"S-DEADLINE"}, set()),
    RefusesUnknownFields: ({"S-UNKNOWN-FIELDS"}, set()),
    ErrorsEndStreams: ({"S-STREAM"}, set()),
    AnswersTheWrongId: ({"S-STREAM"}, set()),
    TakesEmptyBatches: ({"S-STREAM-BATCH"}, set()),
    AnswersOneOfABatch: ({"S-STREAM-BATCH"}, set()),
    KeepsStreamSessions: ({"S-STREAM-SESSIONS"}, {"S-STREAM"}),
    EndsAtGarbage: ({"S-STREAM-GARBAGE"}, set()),
    EvictsWithoutARow: ({"S-EVICTED"}, set()),
    FullForever: ({"S-SESSION-LIMIT"}, set()),
    LeaseIsNoEnd: ({"S-LEASE"}, set()),
}
