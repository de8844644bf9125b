"""What the engine's configuration says about Aerie, all of it in one place.

That place is vLLM's `--additional-config '{"aerie": {...}}'`. vLLM carries it to every worker
process, on other hosts too, which it does not do with all environment variables; and it is part of
the key under which vLLM keeps compiled graphs. The number of draft tokens is not here: vLLM needs
it itself, as `num_speculative_tokens` of `--speculative-config`.
"""

from __future__ import annotations

import dataclasses
import math
import pathlib
from collections.abc import Mapping

from aerie_draft.dtypes import DType
from aerie_draft.security import Security, SecurityError

KEY = "aerie"
_TRANSPORTS = ("stream", "unary")
_DTYPES = {
    "auto": None,
    "float32": DType.FLOAT32,
    "float16": DType.FLOAT16,
    "bfloat16": DType.BFLOAT16,
}


class SettingsError(ValueError):
    """A configuration that no start can be made with."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """One engine's way to its draft server. Times are in seconds."""

    # "host:port", or "unix:/path".
    address: str
    # Which of the server's drafters; empty: its only one.
    drafter: str = ""
    # Where the engine captures, in the drafter's order. None: where the drafter was trained to.
    boundaries: tuple[int, ...] | None = None
    # "stream": all requests of the engine on one stream. "unary": one rpc a request and round.
    transport: str = "stream"
    # What one engine round may wait for drafts, whatever happens to the server.
    deadline: float = 0.25
    # Newest rows of each request that are kept to be sent again to a server that lost them.
    keep_rows: int = 1024
    # Of hidden states on the wire; None: the engine's own.
    dtype: DType | None = None
    # A file whose content goes along as `authorization: Bearer ...`, read at each connection.
    token_file: str = ""
    # PEM files: who may have signed the server's certificate (set: TLS), and for mutual TLS the
    # engine's own certificate and key. The name is what to find in the server's certificate.
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    tls_server_name: str = ""
    # Whose quota on the server this engine's sessions belong to.
    client: str = ""
    # What the start waits for the server.
    start_timeout: float = 30.0
    # Whether the start fails without a server. If not, `boundaries` must be given: nobody else can.
    required: bool = True

    @staticmethod
    def from_config(additional_config) -> Settings:
        """Of vLLM's additional_config. SettingsError names the key, its value and the remedy."""
        given = additional_config.get(KEY) if isinstance(additional_config, Mapping) else None
        if not isinstance(given, Mapping):
            raise SettingsError(
                f"additional_config has {given!r} under {KEY!r}; expected a table with at least an "
                f'address; start vLLM with --additional-config \'{{"{KEY}": {{"address": '
                '"127.0.0.1:50051"}}\''
            )
        known = {field.name: field for field in dataclasses.fields(Settings)}
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise SettingsError(
                f"{KEY} has the settings {', '.join(unknown)}; expected only {', '.join(known)}; "
                "correct the name"
            )
        values = {name: _READERS[name](name, value) for name, value in given.items()}
        if not values.get("address"):
            raise _wrong("address", given.get("address"), '"host:port" or "unix:/path"')
        settings = Settings(**values)
        if not settings.required and settings.boundaries is None:
            raise SettingsError(
                f"{KEY}.required is false and {KEY}.boundaries is not set; expected the "
                "boundaries, since without a server nobody else tells where to capture; give them, "
                "or let the start wait for the server"
            )
        return settings

    def security(self) -> Security:
        """Its TLS. SettingsError for files that contradict each other."""
        try:
            return Security(self.tls_ca, self.tls_cert, self.tls_key, self.tls_server_name)
        except SecurityError as error:
            raise SettingsError(f"{KEY}: {error}") from None

    def token(self) -> str:
        """The content of the token file; empty without one. SettingsError if it cannot be read."""
        if not self.token_file:
            return ""
        try:
            token = pathlib.Path(self.token_file).read_text().strip()
        except OSError as error:
            raise SettingsError(
                f"{KEY}.token_file {self.token_file} cannot be read ({error.strerror}); expected a "
                "file with the token; correct the path or its permissions"
            ) from None
        if not token or not token.isascii() or not token.isprintable():
            raise SettingsError(
                f"{KEY}.token_file {self.token_file} holds no token; expected one line of "
                "printable ASCII; write the token into it"
            )
        return token


def _wrong(name: str, value, expected: str) -> SettingsError:
    return SettingsError(
        f"{KEY}.{name} is {value!r}; expected {expected}; correct it in --additional-config"
    )


def _text(name, value):
    if not isinstance(value, str):
        raise _wrong(name, value, "text")
    return value


def _flag(name, value):
    if not isinstance(value, bool):
        raise _wrong(name, value, "true or false")
    return value


def _seconds(name, value):
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(name, value, "a number of seconds above 0")
    if not (value > 0 and math.isfinite(value)):
        raise _wrong(name, value, "a number of seconds above 0")
    return float(value)


def _rows(name, value):
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise _wrong(name, value, "a whole number of rows from 1")
    return value


def _boundaries(name, value):
    if value is None:
        return None
    fits = isinstance(value, list | tuple) and all(
        isinstance(b, int) and not isinstance(b, bool) and b >= 0 for b in value
    )
    if not fits or not value or len(set(value)) != len(value):
        raise _wrong(name, value, "a list of distinct boundaries, e.g. [2, 15, 27]")
    return tuple(value)


def _choice(table):
    def read(name, value):
        if value not in table:
            raise _wrong(name, value, f"one of {', '.join(table)}")
        return table[value] if isinstance(table, dict) else value

    return read


_READERS = {
    "address": _text,
    "drafter": _text,
    "boundaries": _boundaries,
    "transport": _choice(_TRANSPORTS),
    "deadline": _seconds,
    "keep_rows": _rows,
    "dtype": _choice(_DTYPES),
    "token_file": _text,
    "tls_ca": _text,
    "tls_cert": _text,
    "tls_key": _text,
    "tls_server_name": _text,
    "client": _text,
    "start_timeout": _seconds,
    "required": _flag,
}
