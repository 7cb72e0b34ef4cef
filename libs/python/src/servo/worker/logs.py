"""Lines that user code prints, however many and however long."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

LINE_BYTES_MAX = 16 * 1024
_REDACTED = "***"
# Shorter secrets would turn ordinary words into stars.
_SECRET_CHARS_MIN = 4


class Lines:
    """What comes in pieces, line by line. A long line is cut, its rest thrown away."""

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
        """What stands there without an end of its line is one too."""
        if self._rest and not self._cut:
            self._take(_text(self._rest))
        self._rest, self._cut = b"", False


def _text(line: bytes) -> str:
    return line[:LINE_BYTES_MAX].decode(errors="replace").rstrip("\r")


@dataclass(slots=True)
class Redactor:
    """Takes secrets out of whatever leaves the worker."""

    secrets: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, text: str) -> str:
        for secret in sorted(self.secrets.values(), key=len, reverse=True):
            if len(secret) >= _SECRET_CHARS_MIN:
                text = text.replace(secret, _REDACTED)
        return text
