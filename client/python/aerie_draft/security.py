"""TLS and tokens of a connection, as files say: the one place where channels are made.

The token is read for each call anew, so that a file that is replaced needs no restart.
"""

from __future__ import annotations

import collections
import dataclasses
import pathlib

import grpc


class SecurityError(ValueError):
    """Files or settings that no connection can be made with."""


@dataclasses.dataclass(frozen=True)
class Security:
    """Paths; empty: not wanted."""

    tls_ca: str = ""  # PEM, who may have signed the server's certificate; set: TLS
    tls_cert: str = ""  # PEM, the client's own certificate, for mutual TLS
    tls_key: str = ""  # PEM, its key
    tls_server_name: str = ""  # to be found in the server's certificate; empty: the address
    token_file: str = ""  # a line with the token that calls carry

    def __post_init__(self):
        if bool(self.tls_cert) != bool(self.tls_key):
            raise SecurityError(
                f"tls_cert is {self.tls_cert!r} and tls_key {self.tls_key!r}; expected both or "
                "neither; give the other one"
            )
        if (self.tls_cert or self.tls_server_name) and not self.tls_ca:
            raise SecurityError(
                "tls_cert or tls_server_name is given and tls_ca is not; expected the certificates "
                "that sign the server's; give tls_ca"
            )

    def token(self) -> str:
        """The content of the token file; empty without one."""
        if not self.token_file:
            return ""
        try:
            token = _read("token_file", self.token_file).decode().strip()
        except UnicodeDecodeError:
            token = ""
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise SecurityError(
                f"token_file {self.token_file} holds no token; expected one line of printable "
                "ASCII without blanks; write the token alone into it, not the server's file"
            )
        return token


def open_channel(address: str, options, security: Security | None = None) -> grpc.Channel:
    """Does not connect yet. A Unix socket is dialled in the clear: servers have no TLS on it."""
    security = security or Security()
    options = list(options)
    if security.tls_ca and not address.startswith("unix:"):
        if security.tls_server_name:
            options.append(("grpc.ssl_target_name_override", security.tls_server_name))
        credentials = grpc.ssl_channel_credentials(
            _read("tls_ca", security.tls_ca),
            _read("tls_key", security.tls_key) if security.tls_key else None,
            _read("tls_cert", security.tls_cert) if security.tls_cert else None,
        )
        channel = grpc.secure_channel(address, credentials, options)
    else:
        channel = grpc.insecure_channel(address, options)
    if not security.token_file:
        return channel
    security.token()  # What is wrong with the file should be known now.
    return grpc.intercept_channel(channel, _TokenBearer(security))


def _read(name: str, path: str) -> bytes:
    try:
        return pathlib.Path(path).read_bytes()
    except OSError as error:
        raise SecurityError(
            f"{name} {path} cannot be read ({error.strerror}); expected a file; correct the path "
            "or its permissions"
        ) from None


class _CallDetails(
    collections.namedtuple(
        "_CallDetails",
        ("method", "timeout", "metadata", "credentials", "wait_for_ready", "compression"),
    ),
    grpc.ClientCallDetails,
):
    pass


class _TokenBearer(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    def __init__(self, security: Security):
        self._security = security
        self._last = ""

    def _bearing(self, details):
        try:
            self._last = self._security.token()
        except SecurityError:
            pass  # Half-way through being replaced: the one before may still do.
        metadata = [*(details.metadata or ()), ("authorization", f"Bearer {self._last}")]
        return _CallDetails(
            details.method,
            details.timeout,
            metadata,
            details.credentials,
            details.wait_for_ready,
            details.compression,
        )

    def intercept_unary_unary(self, continuation, client_call_details, request):
        return continuation(self._bearing(client_call_details), request)

    intercept_unary_stream = intercept_unary_unary

    def intercept_stream_unary(self, continuation, client_call_details, request_iterator):
        return continuation(self._bearing(client_call_details), request_iterator)

    intercept_stream_stream = intercept_stream_unary
