"""A server that lies about one thing: passes every call on to a right one, and bends what it must.

Messages travel as bytes, so that what no lie touches arrives as it was sent.
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
    "RegisterSharedMemory": pb.RegisterSharedMemoryRequest,
    "UnregisterSharedMemory": pb.UnregisterSharedMemoryRequest,
}
_RESPONSES = {
    "GetServerInfo": pb.GetServerInfoResponse,
    "OpenSession": pb.OpenSessionResponse,
    "Draft": pb.DraftResponse,
    "CloseSession": pb.CloseSessionResponse,
    "RegisterSharedMemory": pb.RegisterSharedMemoryResponse,
    "UnregisterSharedMemory": pb.UnregisterSharedMemoryResponse,
}


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


class LyingProxy(grpc.GenericRpcHandler):
    """A context manager; `address` is where it listens."""

    def __init__(self, target, lie):
        self._lie = lie
        self._channel = grpc.insecure_channel(
            target,
            options=[
                ("grpc.max_send_message_length", -1),
                ("grpc.max_receive_message_length", -1),
                ("grpc.use_local_subchannel_pool", 1),
            ],
        )
        lie.ask = lambda method, request: self._forward(method, request.SerializeToString(), 60)
        self._over = threading.Event()
        self._server = grpc.server(
            futures.ThreadPoolExecutor(24),
            handlers=[self],
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
