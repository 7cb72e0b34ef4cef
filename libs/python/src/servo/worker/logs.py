"""Lines that user code prints, however many and however long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

LINE_BYTES_MAX = 16 * 1024
_READ_BYTES = 64 * 1024
_REDACTED = "***"
# Shorter secrets would turn ordinary words into stars.
_SECRET_CHARS_MIN = 4


async def read_lines(source: asyncio.StreamReader, take: Callable[[str], None]) -> None:
    """Reads to the end, always: a child that nobody reads would block. A long line is cut, its rest thrown away."""
    rest = b""
    cut = False
    while piece := await source.read(_READ_BYTES):
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            if not cut:
                take(_text(line))
            cut = False
        if len(rest) > LINE_BYTES_MAX:
            if not cut:
                take(_text(rest))
            cut, rest = True, b""
    if rest and not cut:
        take(_text(rest))


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
