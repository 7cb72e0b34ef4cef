"""Messages between the worker and its children: a length of four bytes, then JSON."""

from __future__ import annotations

import json
import struct
from typing import IO, Any

_LENGTH = struct.Struct(">I")
FRAME_BYTES_MAX = 64 * 1024 * 1024


def pack(message: dict[str, Any]) -> bytes:
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
    if len(body) > FRAME_BYTES_MAX:
        raise ValueError(f"a message of {len(body)} bytes is too large; at most {FRAME_BYTES_MAX} are allowed")
    return _LENGTH.pack(len(body)) + body


def length(head: bytes) -> int:
    (count,) = _LENGTH.unpack(head)
    return int(count)


def read(stream: IO[bytes]) -> dict[str, Any] | None:
    """The next message, or ``None`` when the other side is gone."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    message: dict[str, Any] = json.loads(stream.read(length(head)))
    return message
