"""One sequence on an Aerie server: draft, draft, close.

The unit of `base_length` is rows, not tokens: row i pairs the hidden state of position i with the
token at position i + 1, so a sequence of n tokens has n - 1 rows and its first token is never sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import grpc
import numpy as np

from aerie_draft import codec
from aerie_draft._proto import draft_pb2
from aerie_draft.dtypes import encode_rows
from aerie_draft.errors import DeadlineExceeded, Unavailable
from aerie_draft.options import SessionOptions, VerifyCost
from aerie_draft.shared_rows import SharedRows
from aerie_draft.transport import CallMetadata
from aerie_draft.values import AcceptanceRecord, Manifest, Proposal


class DraftSession:
    """One sequence on the server. One thread at a time; made by DraftClient.open()."""

    def __init__(
        self,
        transport,
        manifest: Manifest,
        opened: draft_pb2.OpenSessionResponse,
        *,
        metadata: CallMetadata,
        rows_per_call: int,
        timeout: float,
        retries: int,
        on_lost: Callable[[], None],
        shared_rows: SharedRows | None = None,
    ):
        """`on_lost` is called when the server cannot be reached any more.

        Without `shared_rows` rows go in messages.
        """
        self.session_id: str = opened.session_id
        self.key = metadata.key  # tells a proxy which server holds it
        self.options: SessionOptions = codec.options_value(opened.options)  # in force
        self.lease: float = codec.seconds(opened.lease)
        self.manifest = manifest
        self.rows_per_call = rows_per_call
        # Rows that the server is known to hold; at first those that it began with, a fork's or
        # the ones before its start.
        self.length: int = opened.length
        self._transport = transport
        self._timeout = timeout
        self._retries = retries
        self._on_lost = on_lost
        self._shared_rows = shared_rows
        self._metadata = metadata
        self._seq = 0

    def draft(
        self,
        base_length: int,
        token_ids: Sequence[int],
        rows: np.ndarray | bytes,
        k: int,
        accepted: int | None = None,
        verify_cost: VerifyCost | None = None,
        timeout: float | None = None,
    ) -> Proposal:
        """Commits rows, then asks for k tokens that may follow.

        Args:
            base_length: The row that the first of `rows` is. Below the session's length it takes
                rows back; above, ResyncNeeded tells where to send from.
            token_ids: Of each row the token that follows its state.
            rows: [len(token_ids), row_width] states, converted to the manifest's dtype; or bytes,
                already as the wire wants them.
            k: Tokens to propose, of a tree at most so many of its nodes; 0 commits only.
            accepted: What the caller counted as kept of the last proposal. The server finds it by
                itself; a difference shows in its metrics.
            verify_cost: What the last verification took, for a session with adaptive_k.
        """
        started = time.perf_counter()
        deadline = Deadline(self._timeout if timeout is None else timeout)
        data = memoryview(rows_as_bytes(rows, self.manifest, len(token_ids)))
        row_bytes = self.manifest.row_bytes
        count, calls, judged = len(token_ids), 0, None
        first = 0
        while True:
            end = min(first + self.rows_per_call, count)
            request = codec.draft_message(
                base_length + first,
                token_ids[first:end],
                self.manifest,
                k if end == count else 0,
                accepted if first == 0 else None,
                verify_cost if end == count else None,
            )
            response = self._send(request, data[first * row_bytes : end * row_bytes], deadline)
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
        """Ends the session. `final_tokens`: those since the last draft call, to judge it too."""
        request = draft_pb2.CloseSessionRequest(
            session_id=self.session_id, final_token_ids=final_tokens
        )
        response = self._transport.close_session(
            request, self._timeout if timeout is None else timeout, self._metadata
        )
        return codec.acceptance_value(response.acceptance)

    def _send(self, request, rows: memoryview, deadline: Deadline):
        self._seq += 1
        request.session_id = self.session_id
        request.seq = self._seq
        if self._shared_rows is None or not rows:
            request.hidden_states.data = bytes(rows)
            return self._call(request, deadline)
        return self._shared_rows.send(
            request, rows, lambda: self._call(request, deadline), deadline.left
        )

    def _call(self, request, deadline: Deadline):
        tries = 1 + (self._retries if self._transport.sessions_survive_reconnect else 0)
        while True:
            try:
                left = deadline.left()
                codec.set_time_limit(request, left)
                response = self._transport.draft(request, left, self._metadata)
                self.length = response.length
                return response
            except Unavailable as error:
                tries -= 1
                # A reason comes from the server itself (loading, draining): it heard us, and
                # asking again at once changes nothing.
                if error.reason or tries == 0:
                    self._on_lost()
                    raise


class Deadline:
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


def rows_as_bytes(rows: np.ndarray | bytes, manifest: Manifest, count: int) -> bytes:
    data = rows if isinstance(rows, bytes) else encode_rows(rows, manifest.dtype).tobytes()
    expected = count * manifest.row_bytes
    if len(data) != expected:
        raise ValueError(
            f"hidden states hold {len(data)} bytes; expected {expected}: {count} rows, "
            f"one a token, of {manifest.row_width} elements in {manifest.dtype.name}; send as many "
            "rows as tokens"
        )
    return data
