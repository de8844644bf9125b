"""A connection to an Aerie server: asks what it is, opens sessions.

A client is made without a server: the first call connects, and a server that comes back is found
again. What fails is the call, with one of the exceptions of `aerie_draft.errors`.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Sequence

import grpc
import numpy as np

from aerie_draft import codec
from aerie_draft._proto import draft_pb2
from aerie_draft.dtypes import DType
from aerie_draft.errors import ProtocolMismatch
from aerie_draft.options import Fork, SessionOptions
from aerie_draft.security import Security, open_channel
from aerie_draft.session import Deadline, DraftSession, rows_as_bytes
from aerie_draft.shared_rows import SharedRows
from aerie_draft.transport import (
    CallMetadata,
    StreamTransport,
    UnaryTransport,
    check_session_key,
)
from aerie_draft.values import Manifest, Proposal, ServerInfo

PROTOCOL_VERSION = 1

_TRANSPORTS = {"unary": UnaryTransport, "stream": StreamTransport}
# Of a message besides its rows and tokens; generous, since a message above the limit ends a stream.
_MESSAGE_OVERHEAD = 4096
# A token id is at most five bytes of varint.
_TOKEN_BYTES = 5
_LEAST_SEGMENT, _MOST_SEGMENT = 64 << 10, 64 << 30


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
        rows: "inline", in the messages, or "shm", left in shared memory: for a server on this host
            that allows it, over a Unix socket or loopback. Those that find no room there go in
            the message.
        shared_memory_bytes: Of the segment, taken from /dev/shm until close(). The rows of all
            calls that wait for their answers at one time should find room.
        credentials: For TLS, made by hand; not beside `security`.
        security: TLS and token as files say; without it the connection is in the clear.
    """

    def __init__(
        self,
        address: str,
        *,
        transport: str = "unary",
        timeout: float = 10.0,
        max_message_bytes: int = 64 << 20,
        retries: int = 1,
        rows: str = "inline",
        shared_memory_bytes: int = 32 << 20,
        credentials: grpc.ChannelCredentials | None = None,
        security: Security | None = None,
    ):
        if transport not in _TRANSPORTS:
            raise ValueError(
                f"transport is {transport!r}; expected one of {', '.join(_TRANSPORTS)}; choose one"
            )
        if rows not in ("inline", "shm"):
            raise ValueError(f'rows is {rows!r}; expected "inline" or "shm"; choose one')
        if not _LEAST_SEGMENT <= shared_memory_bytes <= _MOST_SEGMENT:
            raise ValueError(
                f"shared_memory_bytes is {shared_memory_bytes}; expected {_LEAST_SEGMENT} to "
                f"{_MOST_SEGMENT}; the usual value is {32 << 20}"
            )
        options = [
            ("grpc.max_send_message_length", max_message_bytes),
            ("grpc.max_receive_message_length", max_message_bytes),
            # A server that comes back should be noticed within a second, not within two minutes.
            # Not min_reconnect_backoff_ms: it is also how long one attempt may take to connect.
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 1000),
        ]
        if credentials is None:
            self._channel = open_channel(address, options, security)
        elif security is not None:
            raise ValueError(
                "credentials and security are both given; expected one of them; leave credentials out"
            )
        else:
            self._channel = grpc.secure_channel(address, credentials, options)
        self.address = address
        self.timeout = timeout
        self._max_message_bytes = max_message_bytes
        self._retries = retries
        self._transport = _TRANSPORTS[transport](self._channel)
        self._shared_rows = (
            SharedRows(self._transport, shared_memory_bytes) if rows == "shm" else None
        )
        self._info_lock = threading.Lock()
        self._info: ServerInfo | None = None
        # By id, as long as somebody holds them: a fork goes where its parent is.
        self._sessions: weakref.WeakValueDictionary[str, DraftSession]
        self._sessions = weakref.WeakValueDictionary()

    def __enter__(self) -> DraftClient:
        return self

    def __exit__(self, *_):
        self.close()

    def close(self) -> None:
        """Ends the stream, if there is one, and the connection."""
        if self._shared_rows is not None:
            self._shared_rows.close()
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

    def open_session(
        self,
        manifest: Manifest,
        options: SessionOptions = SessionOptions(),
        *,
        fork: Fork | None = None,
        start: int = 0,
        client: str = "",
        key: str | None = None,
        traceparent: str = "",
        timeout: float | None = None,
    ) -> DraftSession:
        """Opens a session.

        ManifestMismatch if the manifest does not fit the drafter; InvalidRequest if options
        contradict each other or the server's limits; SessionUnknown if there is none to fork.

        Args:
            options: How the session is to be drafted for.
            fork: Begins with rows of another session, whose memory is shared.
            start: The first row that will be sent, when the states before it were never computed.
                Drafts are made without those rows, which costs acceptance at the beginning. At
                most one of `fork` and `start`.
            client: Whose quota and share of the server the session belongs to.
            key: Behind a proxy, sessions with equal keys come to one server. None: a key of its
                own, or for a fork that of its parent, when that is this client's; the fork of
                another client's session must be given DraftSession.key of that one. Not with
                transport "stream", which goes to one server as a whole.
            traceparent: The W3C traceparent of the request that the session serves; it goes into
                the server's log and request log.
        """
        deadline = Deadline(self.timeout if timeout is None else timeout)
        request = codec.open_message(manifest, options, fork, start, client, traceparent)
        parent = self._sessions.get(fork.session_id) if fork is not None else None
        key = self._transport.key_for(parent.key if key is None and parent is not None else key)
        check_session_key(key)
        metadata = CallMetadata(key, traceparent)
        info = self._known_info(deadline)
        rows_per_call = self._rows_per_call(manifest, info)
        if self._shared_rows is not None:
            self._shared_rows.ensure(info.shared_memory, client, deadline.left())
        response = self._transport.open_session(request, deadline.left(), metadata)
        session = DraftSession(
            self._transport,
            manifest,
            response,
            metadata=metadata,
            rows_per_call=rows_per_call,
            timeout=self.timeout,
            retries=self._retries,
            on_lost=self._forget_info,
            shared_rows=self._shared_rows,
        )
        self._sessions[session.session_id] = session
        if _kind(session.options) != _kind(options):
            session.close()
            raise ProtocolMismatch(
                grpc.StatusCode.FAILED_PRECONDITION,
                f"the server says that it drafts with {session.options}; expected {options}; "
                "update the server, or ask for what it has",
            )
        return session

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
        data = rows_as_bytes(rows, manifest, len(token_ids))
        request = codec.draft_message(0, token_ids, manifest, k, None)
        request.hidden_states.data = data
        request.manifest.CopyFrom(codec.manifest_message(manifest))
        timeout = self.timeout if timeout is None else timeout
        codec.set_time_limit(request, timeout)
        response = self._transport.draft(request, timeout)
        return codec.proposal_value(response, None, time.perf_counter() - started, 1)

    def _forget_info(self) -> None:
        with self._info_lock:
            self._info = None

    def _known_info(self, deadline: Deadline) -> ServerInfo:
        # Asked once, not for each session, until the server is lost: another may come back.
        with self._info_lock:
            info = self._info
        return info or self.server_info(deadline.left())

    def _rows_per_call(self, manifest: Manifest, info: ServerInfo) -> int:
        _check_travel(manifest, info)
        limits = info.limits
        message_bytes = min(
            self._max_message_bytes, limits.max_message_bytes or self._max_message_bytes
        )
        row_bytes = manifest.row_bytes + _TOKEN_BYTES
        rows = (message_bytes - _MESSAGE_OVERHEAD) // row_bytes
        if rows < 1:
            raise ValueError(
                f"one row takes {row_bytes} bytes but a message {message_bytes}; expected room "
                "for at least one row; raise the message limit of the client or the server"
            )
        return min(rows, limits.max_rows_per_call or rows)


def _check_travel(manifest: Manifest, info: ServerInfo) -> None:
    """A server from before fused rows does not look at the field at all."""
    if manifest.fused and not any(drafter.fc_digest for drafter in info.drafters):
        raise ProtocolMismatch(
            grpc.StatusCode.FAILED_PRECONDITION,
            "the manifest asks for fused rows, which no drafter of the server takes; expected one "
            "with an fc_digest; send captures, or update the server",
        )
    if manifest.dtype is DType.FLOAT8_E4M3FN and manifest.dtype not in info.dtypes:
        raise ProtocolMismatch(
            grpc.StatusCode.FAILED_PRECONDITION,
            "the manifest asks for FLOAT8_E4M3FN rows, which the server does not list; expected one "
            f"of {', '.join(d.name for d in info.dtypes)}; choose one, or update the server",
        )


def _kind(options: SessionOptions) -> tuple:
    """What must come back as it was asked for; sizes may come back smaller."""
    probs = options.sampling and options.sampling.proposal_probs
    return options.tree, probs, options.ancestor_mask, options.links, options.adaptive_k
