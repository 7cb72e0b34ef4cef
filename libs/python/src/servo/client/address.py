"""The address of a server, and the credentials and trust for the connection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import grpc

from servo.errors import InvalidValue

_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"
_DEFAULT_PORT = 7400
_KEEP_ALIVE_MS = 10_000
_RECONNECT_MS_MIN = 100
_RECONNECT_MS_MAX = 2_000
_MESSAGE_BYTES_MAX = 4 * 1024 * 1024
# The names of the services' stubs on a client; each stub is created on first use.
STUBS = ("planner", "scheduler", "dispatcher", "callback", "backfill", "automation", "quota", "system", "access")


@dataclass(frozen=True, slots=True)
class Address:
    """``ca`` is the authority's certificate as PEM; without it the system's authorities are trusted."""

    url: str
    api_key: str = ""
    ca: bytes | None = None
    # The name in the server's certificate, if it differs from the host of the address.
    server_name: str = ""
    # Called before every request, for short-lived tokens; a path is read before every request.
    token: Callable[[], str] | Path | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme != "https" or not parts.hostname or parts.path not in ("", "/"):
            raise InvalidValue(f"`{self.url}` is not the address of a server: write https://host:port")
        if not (self.api_key.isascii() and self.api_key.isprintable()) or " " in self.api_key:
            raise InvalidValue("the API key may hold visible ASCII characters only")
        if self.api_key and self.token:
            raise InvalidValue("an API key and a token are given: a caller is one of them")

    def __repr__(self) -> str:
        return f"Address({self.url!r})"

    @property
    def target(self) -> str:
        parts = urlsplit(self.url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{host}:{parts.port or _DEFAULT_PORT}"

    @property
    def credentials(self) -> grpc.ChannelCredentials:
        channel = grpc.ssl_channel_credentials(root_certificates=self.ca)
        if self.token:
            return grpc.composite_channel_credentials(channel, grpc.metadata_call_credentials(_Bearer(self.token)))
        if self.api_key:
            return grpc.composite_channel_credentials(channel, grpc.access_token_call_credentials(self.api_key))
        return channel

    @property
    def options(self) -> list[tuple[str, str | int]]:
        options: list[tuple[str, str | int]] = [
            # The client decides about retries, because gRPC does not know which calls are safe to
            # repeat.
            ("grpc.enable_retries", 0),
            # As short as the client's own pauses; by default gRPC waits a second before it
            # reconnects.
            ("grpc.initial_reconnect_backoff_ms", _RECONNECT_MS_MIN),
            ("grpc.max_reconnect_backoff_ms", _RECONNECT_MS_MAX),
            ("grpc.keepalive_time_ms", _KEEP_ALIVE_MS),
            ("grpc.max_receive_message_length", _MESSAGE_BYTES_MAX),
        ]
        return [*options, ("grpc.ssl_target_name_override", self.server_name)] if self.server_name else options


def read_authority(file: str | Path | None) -> bytes | None:
    """Checks the certificate here, because gRPC accepts any bytes and then reports that the server is unreachable."""
    if not file:
        return None
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise InvalidValue(f"the authority's certificate {file} cannot be read: {error.strerror}") from error
    if _CERTIFICATE not in content:
        raise InvalidValue(f"there is no certificate in {file}; name a PEM file with that of the server's authority")
    return content


class _Bearer(grpc.AuthMetadataPlugin):
    def __init__(self, source: Callable[[], str] | Path) -> None:
        self._source = source

    def __call__(self, _context: grpc.AuthMetadataContext, callback: grpc.AuthMetadataPluginCallback) -> None:
        try:
            token = self._source.read_text().strip() if isinstance(self._source, Path) else self._source()
        # An exception of the token source belongs to the call that needs the token.
        except Exception as error:
            callback((), error)
        else:
            callback((("authorization", f"Bearer {token}"),), None)
