"""Messages between the worker and its children: four bytes of length, then JSON."""

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


def take(received: bytearray) -> dict[str, Any] | None:
    """Removes and returns the first message; ``None`` if it is incomplete. Raises ``ValueError`` for an invalid one."""
    if len(received) < _LENGTH.size:
        return None
    end = _LENGTH.size + _length(received)
    if end > FRAME_BYTES_MAX:
        raise ValueError(f"{end} bytes at once")
    if len(received) < end:
        return None
    message: dict[str, Any] = json.loads(received[_LENGTH.size : end])
    del received[:end]
    return message


def read(stream: IO[bytes]) -> dict[str, Any] | None:
    """The next message, or ``None`` at the end of the stream."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    message: dict[str, Any] = json.loads(stream.read(_length(head)))
    return message


def _length(head: bytes | bytearray) -> int:
    (count,) = _LENGTH.unpack_from(head)
    return int(count)
