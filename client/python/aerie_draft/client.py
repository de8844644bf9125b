"""Talks to an Aerie server: open a session, draft, close.

The unit of `base_length` is rows, not tokens: row i pairs the hidden state of position i with the
token at position i + 1, so a sequence of n tokens has n - 1 rows and its first token is never sent.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import grpc
import numpy as np

from aerie_draft import codec
from aerie_draft._proto import draft_pb2
from aerie_draft.dtypes import encode_rows
from aerie_draft.errors import DeadlineExceeded, ProtocolMismatch, Unavailable
from aerie_draft.transport import StreamTransport, UnaryTransport
from aerie_draft.values import AcceptanceRecord, Manifest, Proposal, ServerInfo

PROTOCOL_VERSION = 1

_TRANSPORTS = {"unary": UnaryTransport, "stream": StreamTransport}
# Of a message besides its rows and tokens; generous, since a message above the limit ends a stream.
_MESSAGE_OVERHEAD = 4096
# A token id is at most five bytes of varint.
_TOKEN_BYTES = 5


class DraftClient:
    """A connection to one server. Any thread; a session belongs to one thread at a time.

    Args:
        address: "host:port", or "unix:/path" for a Unix socket.
        transport: "unary", one rpc a call, or "stream", all calls on one stream.
        timeout: Seconds that a call may take unless it says otherwise; longer prompts take all
            their calls within it.
        max_message_bytes: Largest message in either direction; the server has its own limit, and
            the smaller one decides how prompts are cut into calls.
        retries: How often a draft call is repeated when the connection breaks under it. The server
            answers a repeated call with the stored answer, so nothing is committed twice.
        credentials: For TLS; without them the connection is in the clear.
    """

    def __init__(
        self,
        address: str,
        *,
        transport: str = "unary",
        timeout: float = 10.0,
        max_message_bytes: int = 64 << 20,
        retries: int = 1,
        credentials: grpc.ChannelCredentials | None = None,
    ):
        if transport not in _TRANSPORTS:
            raise ValueError(
                f"transport is {transport!r}; expected one of {', '.join(_TRANSPORTS)}; choose one"
            )
        options = [
            ("grpc.max_send_message_length", max_message_bytes),
            ("grpc.max_receive_message_length", max_message_bytes),
            # A server that comes back should be noticed within seconds, not the default two minutes.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 2000),
        ]
        if credentials is None:
            self._channel = grpc.insecure_channel(address, options)
        else:
            self._channel = grpc.secure_channel(address, credentials, options)
        self.address = address
        self.timeout = timeout
        self._max_message_bytes = max_message_bytes
        self._retries = retries
        self._transport = _TRANSPORTS[transport](self._channel)
        self._info_lock = threading.Lock()
        self._info: ServerInfo | None = None

    def __enter__(self) -> DraftClient:
        return self

    def __exit__(self, *_):
        self.close()

    def close(self) -> None:
        """Ends the stream, if there is one, and the connection."""
        self._transport.close()
        self._channel.close()

    def server_info(self, timeout: float | None = None) -> ServerInfo:
        """What the server is and holds, asked anew. ProtocolMismatch if it is too old."""
        message = self._transport.server_info(
            draft_pb2.GetServerInfoRequest(), self.timeout if timeout is None else timeout
        )
        info = codec.server_info_value(message)
        if info.protocol_version < PROTOCOL_VERSION:
            raise ProtocolMismatch(
                grpc.StatusCode.FAILED_PRECONDITION,
                f"the server speaks protocol {info.protocol_version}; expected at least "
                f"{PROTOCOL_VERSION}; update the server",
            )
        with self._info_lock:
            self._info = info
        return info

    def open(
        self, manifest: Manifest, max_k: int | None = None, timeout: float | None = None
    ) -> DraftSession:
        """Opens a session. ManifestMismatch if the manifest does not fit the drafter."""
        deadline = _Deadline(self.timeout if timeout is None else timeout)
        request = draft_pb2.OpenSessionRequest(manifest=codec.manifest_message(manifest))
        if max_k is not None:
            request.options.max_k = max_k
        rows_per_call = self._rows_per_call(manifest, deadline)
        response = self._transport.open_session(request, deadline.left())
        return DraftSession(self, manifest, response, rows_per_call)

    def draft_once(
        self,
        manifest: Manifest,
        token_ids: Sequence[int],
        rows: np.ndarray | bytes,
        k: int,
        timeout: float | None = None,
    ) -> Proposal:
        """Drafts for a whole sequence in one call; the server keeps nothing."""
        started = time.perf_counter()
        data = _as_bytes(rows, manifest, len(token_ids))
        request = codec.draft_message(0, token_ids, data, manifest.dtype, k, None)
        request.manifest.CopyFrom(codec.manifest_message(manifest))
        response = self._transport.draft(request, self.timeout if timeout is None else timeout)
        return codec.proposal_value(response, None, time.perf_counter() - started, 1)

    def _forget_info(self) -> None:
        with self._info_lock:
            self._info = None

    def _rows_per_call(self, manifest: Manifest, deadline: _Deadline) -> int:
        # Asked once, not for each session, until the server is lost: another may come back.
        with self._info_lock:
            info = self._info
        limits = (info or self.server_info(deadline.left())).limits
        message_bytes = min(
            self._max_message_bytes, limits.max_message_bytes or self._max_message_bytes
        )
        row_bytes = manifest.row_width * manifest.dtype.size + _TOKEN_BYTES
        rows = (message_bytes - _MESSAGE_OVERHEAD) // row_bytes
        if rows < 1:
            raise ValueError(
                f"one row takes {row_bytes} bytes but a message {message_bytes}; expected room for at "
                "least one row; raise the message limit of the client or the server"
            )
        return min(rows, limits.max_rows_per_call or rows)


class DraftSession:
    """One sequence on the server. One thread at a time; made by DraftClient.open()."""

    def __init__(self, client: DraftClient, manifest: Manifest, opened, rows_per_call: int):
        self.session_id: str = opened.session_id
        self.max_k: int = opened.options.max_k
        self.lease: float = codec.seconds(opened.lease)
        self.manifest = manifest
        self.rows_per_call = rows_per_call
        self.length = 0  # rows that the server is known to hold
        self._client = client
        self._seq = 0

    def draft(
        self,
        base_length: int,
        token_ids: Sequence[int],
        rows: np.ndarray | bytes,
        k: int,
        accepted: int | None = None,
        timeout: float | None = None,
    ) -> Proposal:
        """Commits rows, then asks for k tokens that may follow.

        Args:
            base_length: The row that the first of `rows` is. Below the session's length it takes
                rows back; above, ResyncNeeded tells where to send from.
            token_ids: Of each row the token that follows its state.
            rows: [len(token_ids), row_width] states, converted to the manifest's dtype; or bytes,
                already as the wire wants them.
            k: Tokens to propose; 0 commits only.
            accepted: What the caller counted as kept of the last proposal. The server finds it by
                itself; a difference shows in its metrics.
        """
        started = time.perf_counter()
        deadline = _Deadline(self._client.timeout if timeout is None else timeout)
        data = memoryview(_as_bytes(rows, self.manifest, len(token_ids)))
        row_bytes = self.manifest.row_width * self.manifest.dtype.size
        count, calls, judged = len(token_ids), 0, None
        first = 0
        while True:
            end = min(first + self.rows_per_call, count)
            request = codec.draft_message(
                base_length + first,
                token_ids[first:end],
                bytes(data[first * row_bytes : end * row_bytes]),
                self.manifest.dtype,
                k if end == count else 0,
                accepted if first == 0 else None,
            )
            response = self._send(request, deadline)
            calls += 1
            if response.HasField("accepted"):
                judged = response.accepted
            first = end
            if first == count:
                break
        return codec.proposal_value(response, judged, time.perf_counter() - started, calls)

    def close(
        self, final_tokens: Sequence[int] = (), timeout: float | None = None
    ) -> AcceptanceRecord:
        """Ends the session. `final_tokens`: committed since the last draft call, to judge it too."""
        request = draft_pb2.CloseSessionRequest(
            session_id=self.session_id, final_token_ids=final_tokens
        )
        response = self._client._transport.close_session(
            request, self._client.timeout if timeout is None else timeout
        )
        return codec.acceptance_value(response.acceptance)

    def _send(self, request, deadline: _Deadline):
        self._seq += 1
        request.session_id = self.session_id
        request.seq = self._seq
        transport = self._client._transport
        tries = 1 + (self._client._retries if transport.sessions_survive_reconnect else 0)
        while True:
            try:
                response = transport.draft(request, deadline.left())
                self.length = response.length
                return response
            except Unavailable as error:
                tries -= 1
                # A reason comes from the server itself (loading, draining): it heard us, and
                # asking again at once changes nothing.
                if error.reason or tries == 0:
                    self._client._forget_info()
                    raise


class _Deadline:
    """A point in time shared by the calls of one operation."""

    def __init__(self, timeout: float):
        self._timeout = timeout
        self._end = time.monotonic() + timeout

    def left(self) -> float:
        left = self._end - time.monotonic()
        if left <= 0:
            raise DeadlineExceeded(
                grpc.StatusCode.DEADLINE_EXCEEDED,
                f"{self._timeout:.3f} s went by before all calls were sent; expected them to fit; "
                "allow more time",
            )
        return left


def _as_bytes(rows: np.ndarray | bytes, manifest: Manifest, count: int) -> bytes:
    data = rows if isinstance(rows, bytes) else encode_rows(rows, manifest.dtype).tobytes()
    expected = count * manifest.row_width * manifest.dtype.size
    if len(data) != expected:
        raise ValueError(
            f"hidden states hold {len(data)} bytes; expected {expected}: {count} rows, one for each "
            f"token, of {manifest.row_width} elements in {manifest.dtype.name}; send one row a token"
        )
    return data
