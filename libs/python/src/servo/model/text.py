"""Rules about texts that several kinds of names share."""

from __future__ import annotations

import re

from .limits import NAME_BYTES_MAX

_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_EXCERPT_CHARS_MAX = 64


def is_name(text: str) -> bool:
    """What parts of asset keys and partition dimensions may be called."""
    return len(text) <= NAME_BYTES_MAX and _NAME.fullmatch(text) is not None


def excerpt(text: str) -> str:
    """What an error repeats of the text it refuses: enough to find it, never a page."""
    return text if len(text) <= _EXCERPT_CHARS_MAX else f"{text[:_EXCERPT_CHARS_MAX]}…"
