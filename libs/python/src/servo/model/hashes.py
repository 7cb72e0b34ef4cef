"""The hashes of identities, and the lower-case base32 in which they are written."""

from __future__ import annotations

import base64
import hashlib
import hmac

# The length of 16 bytes in base32. Longer hashes are cut to it.
_BASE32_CHARS = 26
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def sha256(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def hmac_sha256(key: bytes, message: str) -> bytes:
    return hmac.digest(key, message.encode(), "sha256")


def base32(raw: bytes) -> str:
    """RFC 4648, lower case, without padding."""
    return base64.b32encode(raw).decode().rstrip("=").lower()


def head(text: str) -> str:
    """The first 26 base32 characters of the text's sha256."""
    return base32(sha256(text))[:_BASE32_CHARS]


def crockford(raw: bytes) -> str:
    """16 bytes in the alphabet of ULIDs."""
    number = int.from_bytes(raw)
    return "".join(_CROCKFORD[number >> 5 * place & 31] for place in range(_BASE32_CHARS - 1, -1, -1))


def from_crockford(text: str) -> bytes | None:
    """The 16 bytes, if the text is their canonical spelling."""
    number = 0
    for character in text:
        place = _CROCKFORD.find(character)
        if place < 0:
            return None
        number = number << 5 | place
    return number.to_bytes(16) if len(text) == _BASE32_CHARS and number < 2**128 else None
