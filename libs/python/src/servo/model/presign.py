"""Presigned callbacks: a path, its expiry, and a signature over both.

The signed text is ``v1\\nMETHOD\\npath\\nexpires\\nkid``; the transmitted text is
``path?expires=…&kid=…&sig=…``.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Mapping
from typing import NamedTuple

from servo.errors import InvalidValue

from .hashes import hmac_sha256
from .limits import CLOCK_SKEW_SECONDS_MAX, PRESIGNED_BYTES_MAX
from .text import excerpt

_METHOD = re.compile(r"[A-Z]+")
_PATH = re.compile(r"/[!-\"$->@-~]*")
_PRESIGNED = re.compile(
    r"(?P<path>.*?)\?expires=(?P<expires>0|[1-9][0-9]{0,18})&kid=(?P<kid>.*?)&sig=(?P<sig>[\w-]{43})"
)


class Presigned(NamedTuple):
    """The content of a presigned text, not verified."""

    path: str
    expires: int
    kid: str
    signature: str

    @property
    def verb(self) -> str:
        return self.path.rpartition("/")[2]


def sign(key: bytes, method: str, path: str, expires: int, kid: str) -> str:
    """``expires`` is in seconds since 1970."""
    signed = f"{path}?expires={expires}&kid={kid}&sig={_signature(key, method, path, expires, kid)}"
    fits = _METHOD.fullmatch(method) and _PATH.fullmatch(path) and expires >= 0
    if not fits or len(signed) > PRESIGNED_BYTES_MAX:
        raise InvalidValue(
            f"`{excerpt(path)}` cannot be signed: the method is upper-case letters, the path printable ASCII beginning "
            f"with `/` without `?` and `#`, the expiry not negative, the whole at most {PRESIGNED_BYTES_MAX} bytes"
        )
    return signed


def read(presigned: str) -> Presigned:
    """Accepts the spelling of ``sign`` only."""
    found = _PRESIGNED.fullmatch(presigned) if len(presigned) <= PRESIGNED_BYTES_MAX else None
    if found is None:
        raise InvalidValue("the presigned path is malformed; send it exactly as it was received")
    return Presigned(found["path"], int(found["expires"]), found["kid"], found["sig"])


def verify(keys: Mapping[str, bytes], method: str, presigned: str, now: int) -> Presigned:
    """The path, if it was signed with one of these keys and has not expired at ``now``."""
    parts = read(presigned)
    key = keys.get(parts.kid)
    if key is None:
        raise InvalidValue("the presigned path names an unknown or retired key; request a new path")
    if not hmac.compare_digest(_signature(key, method, parts.path, parts.expires, parts.kid), parts.signature):
        raise InvalidValue("the signature does not belong to this method and path; send them exactly as received")
    if now - parts.expires > CLOCK_SKEW_SECONDS_MAX:
        raise InvalidValue("the presigned path has expired; each heartbeat answers with a new one")
    return parts


def _signature(key: bytes, method: str, path: str, expires: int, kid: str) -> str:
    digest = hmac_sha256(key, f"v1\n{method}\n{path}\n{expires}\n{kid}")
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
