"""A worker's calls straight on the wire, one rpc each or all on a stream."""

import itertools
import queue
import threading
import time

import grpc
from aerie_draft._proto import draft_pb2 as pb


class Failed(Exception):
    """A call without an answer: code, and the detail where one came."""

    def __init__(self, code, detail=None):
        super().__init__(code)
        self.code, self.detail = code, detail


class Unary:
    def __init__(self, stub):
        self._stub = stub

    def call(self, kind, request, timeout):
        method = {"open_session": "OpenSession", "draft": "Draft", "close_session": "CloseSession"}
        try:
            return getattr(self._stub, method[kind])(request, timeout=timeout)
        except grpc.RpcError as error:
            raise Failed(error.code(), self._detail(error)) from None

    def _detail(self, error):
        for key, value in error.trailing_metadata() or ():
            if key == "grpc-status-details-bin":
                detail = pb.ErrorDetail()
                pb.StatusDetails.FromString(value).details[0].Unpack(detail)
                return detail
        return None


class Stream:
    """Opened anew after it broke; then the sessions on it are gone."""

    def __init__(self, stub, any_answer):
        self._stub, self._any_answer = stub, any_answer
        self._ids = itertools.count(1)
        self._open()

    def _open(self):
        self._requests, self._answers = queue.SimpleQueue(), queue.SimpleQueue()
        call = self._stub.DraftStream(iter(self._requests.get, None))
        threading.Thread(target=self._read, args=(call, self._answers), daemon=True).start()

    def _read(self, call, answers):
        try:
            for answer in call:
                answers.put(answer)
        except grpc.RpcError as error:
            answers.put(Failed(error.code()))

    def call(self, kind, request, timeout):
        number = next(self._ids)
        self._requests.put(pb.DraftStreamRequest(id=number, **{kind: request}))
        end = time.monotonic() + timeout
        while True:
            try:
                answer = self._answers.get(timeout=max(end - time.monotonic(), 0.001))
            except queue.Empty:
                raise Failed(grpc.StatusCode.DEADLINE_EXCEEDED) from None
            if isinstance(answer, Failed):
                self._open()
                raise Failed(grpc.StatusCode.NOT_FOUND)
            if answer.id == number or (self._any_answer and answer.HasField(kind)):
                break
        if answer.HasField("error"):
            codes = {code.value[0]: code for code in grpc.StatusCode}
            raise Failed(codes[answer.error.code], answer.error)
        return getattr(answer, kind)
