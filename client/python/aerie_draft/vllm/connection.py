"""The way to the draft server: made, checked, given up, and made again by itself.

After a failure nobody asks for a while (`Availability`). Then a new connection is made and the
server behind it is checked as at the start, since another one may have come in its place.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import grpc

from aerie_draft.availability import Availability
from aerie_draft.errors import AerieError, DeadlineExceeded, Unavailable
from aerie_draft.values import ServerInfo
from aerie_draft.vllm.admission import AdmissionError, Plan
from aerie_draft.vllm.link import Link, StreamLink, UnaryLink
from aerie_draft.vllm.settings import KEY, Settings

_LOG = logging.getLogger("aerie_draft.vllm")
# Of a message besides its rows and tokens; a token id is at most five bytes of varint.
_MESSAGE_OVERHEAD, _TOKEN_BYTES = 4096, 5


def patience_of(settings: Settings) -> float:
    """Seconds of silence after which a connection is given up. Long prompts may take a while."""
    return max(5.0, 10 * settings.deadline)


def connect(settings: Settings) -> Link:
    """A link of the settings' transport. SettingsError when the token cannot be read."""
    token = settings.token()
    if settings.transport == "unary":
        return UnaryLink(
            settings.address,
            token=token,
            security=settings.security(),
            patience=patience_of(settings),
        )
    return StreamLink(settings.address, token=token, security=settings.security())


def ask_at_start(settings: Settings) -> ServerInfo | None:
    """What the server says of itself; None if it is not there and need not be."""
    link = UnaryLink(
        settings.address,
        token=settings.token(),
        security=settings.security(),
        patience=patience_of(settings),
    )
    try:
        info = link.server_info(settings.start_timeout, wait_for_ready=True)
    except AerieError as error:
        if settings.required:
            raise AdmissionError(
                f"no answer from the draft server at {settings.address} within "
                f"{settings.start_timeout:g} s ({error}); expected one; start aerie-server there, "
                f"correct {KEY}.address, or let the engine start without it by setting "
                f"{KEY}.required to false and {KEY}.boundaries"
            ) from None
        _LOG.warning(
            "no answer from the draft server at %s (%s); the engine starts without drafts and asks "
            "again by itself",
            settings.address,
            error,
        )
        return None
    finally:
        link.close()
    _LOG.info(
        "draft server at %s: version %s with %s",
        settings.address,
        info.version,
        ", ".join(f"{d.name} ({', '.join(map(str, d.captures))})" for d in info.drafters),
    )
    return info


class Connection:
    """One thread. `link` is None while there is no server.

    Args:
        connect: Makes a link. May raise AerieError or SettingsError.
        check: Raises AdmissionError if this server does not fit the engine any more.
    """

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        connect: Callable[[], Link],
        check: Callable[[ServerInfo], None],
        availability: Availability | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._plan = plan
        self._address = settings.address
        self._connect = connect
        self._check = check
        self._clock = clock
        self._down_since: float | None = None
        self.availability = availability or Availability(clock=clock)
        self.link: Link | None = None
        self.rows_per_call = 0

    def is_up(self, end: float) -> bool:
        """Whether to ask the server now. Connects, by `end`, when there is no connection."""
        if not self.availability.ready():
            return False
        if self.link is not None:
            return True
        link = None
        try:
            link = self._connect()
            info = link.server_info(max(0.01, end - self._clock()))
            self._check(info)
        except (AerieError, ValueError) as error:
            if link is not None:
                link.close()
            self.failed(error)
            return False
        self.link = link
        self.rows_per_call = _rows_per_call(self._plan, info)
        return True

    def drop(self, error: AerieError) -> Link | None:
        """Gives the link up, if there is one, and returns it."""
        link = self.close()
        if link is not None:
            self.failed(error)
        return link

    def close(self, grace: float = 0.0) -> Link | None:
        link, self.link = self.link, None
        if link is not None:
            link.close(grace)
        return link

    def failed(self, error: Exception) -> None:
        """No drafts from this server for a while. Said in the log once, not once a round."""
        self.availability.failed(error)
        if self._down_since is None or isinstance(error, AdmissionError):
            _LOG.warning(
                "no drafts from %s: %s; the engine goes on without and asks again by itself",
                self._address,
                error,
            )
        if self._down_since is None:
            self._down_since = self._clock()

    def succeeded(self) -> None:
        """Drafts came in time."""
        self.availability.succeeded()
        if self._down_since is not None:
            _LOG.warning(
                "drafts from %s are back after %.1f s",
                self._address,
                self._clock() - self._down_since,
            )
            self._down_since = None


def late(calls: int, deadline: float) -> DeadlineExceeded:
    """Not one of so many calls was answered within the round."""
    return DeadlineExceeded(
        grpc.StatusCode.DEADLINE_EXCEEDED,
        f"none of {calls} calls was answered within {deadline} s; expected all of them; look at "
        "the server's load, or allow more with the setting deadline",
    )


def silent(seconds: float) -> Unavailable:
    """A call has been under way for longer than patience has it."""
    return Unavailable(
        grpc.StatusCode.UNAVAILABLE,
        f"a call has been without an answer for {seconds:.1f} s; expected one; a new connection is "
        "made",
    )


def _rows_per_call(plan: Plan, info: ServerInfo) -> int:
    row_bytes = plan.manifest.row_width * plan.manifest.dtype.size + _TOKEN_BYTES
    message_bytes = info.limits.max_message_bytes or (4 << 20)
    rows = max(1, (message_bytes - _MESSAGE_OVERHEAD) // row_bytes)
    return min(rows, info.limits.max_rows_per_call or rows)
