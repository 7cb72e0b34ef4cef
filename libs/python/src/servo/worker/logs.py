"""Lines that user code prints, in any number and length."""

from __future__ import annotations

from collections.abc import Callable

from servo.v1 import callback_pb2

# The length of a line that is sent, and of the part that is searched for secrets, which must
# include a secret that crosses the limit.
LINE_CHARS_MAX = 16 * 1024
LINE_BYTES_MAX = 2 * LINE_CHARS_MAX
FIELD_CHARS_MAX = 1024
# The server accepts 1,000 lines and 1 MiB per request.
_BATCH_LINES_MAX = 500
_BATCH_BYTES_MAX = 256 * 1024
# Lines that wait while the server is slow or unreachable; further lines are counted.
_KEPT_LINES_MAX = 5_000
_KEPT_BYTES_MAX = 2 * 1024 * 1024


class Lines:
    """Splits chunks into lines. The rest of an overlong line is dropped."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take = take
        self._rest = b""
        self._cut = False

    def feed(self, piece: bytes) -> None:
        *whole, rest = (self._rest + piece).split(b"\n")
        for line in whole:
            if not self._cut:
                self._take(_text(line))
            self._cut = False
        self._rest = rest
        if len(rest) > LINE_BYTES_MAX:
            if not self._cut:
                self._take(_text(rest))
            self._cut, self._rest = True, b""

    def end(self) -> None:
        """Emits an incomplete last line."""
        if self._rest and not self._cut:
            self._take(_text(self._rest))
        self._rest, self._cut = b"", False


class LogBuffer:
    """Lines of an attempt that are waiting to be sent."""

    def __init__(self) -> None:
        self._lines: list[callback_pb2.LogLine] = []
        self._bytes = 0
        self._dropped = 0

    def __bool__(self) -> bool:
        return bool(self._lines) or self._dropped > 0

    @property
    def full(self) -> bool:
        return len(self._lines) >= _KEPT_LINES_MAX or self._bytes >= _KEPT_BYTES_MAX

    def drop(self) -> None:
        self._dropped += 1

    def add(self, line: callback_pb2.LogLine) -> None:
        self._lines.append(line)
        self._bytes += line.ByteSize()

    def take(self) -> callback_pb2.AppendLogsRequest:
        """The next batch."""
        count = size = 0
        for line in self._lines[:_BATCH_LINES_MAX]:
            size += line.ByteSize()
            if count and size > _BATCH_BYTES_MAX:
                break
            count += 1
        batch, self._lines = self._lines[:count], self._lines[count:]
        self._bytes -= sum(line.ByteSize() for line in batch)
        dropped, self._dropped = self._dropped, 0
        return callback_pb2.AppendLogsRequest(lines=batch, dropped_lines=dropped)


def is_cut(text: str) -> bool:
    """Whether the line was truncated. The limit can split a multi-byte character."""
    return len(text) * 4 > LINE_BYTES_MAX and len(text.encode(errors="replace")) > LINE_BYTES_MAX - 4


def _text(line: bytes) -> str:
    return line[:LINE_BYTES_MAX].decode(errors="replace").rstrip("\r")
