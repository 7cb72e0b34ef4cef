"""Rules for texts that several kinds of names share."""

from __future__ import annotations

import re

from .limits import NAME_BYTES_MAX

_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_EXCERPT_CHARS_MAX = 64


def is_name(text: str) -> bool:
    """Whether the text is valid in asset keys and as the name of a dimension."""
    return len(text) <= NAME_BYTES_MAX and _NAME.fullmatch(text) is not None


def excerpt(text: str) -> str:
    """The part of a refused text that an error repeats."""
    return text if len(text) <= _EXCERPT_CHARS_MAX else f"{text[:_EXCERPT_CHARS_MAX]}…"
