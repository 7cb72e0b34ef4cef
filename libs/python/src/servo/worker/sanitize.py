"""Makes texts of user code storable: Postgres has no NUL, and UTF-8 no lone surrogates."""

from __future__ import annotations

# Replacements for characters that cannot be sent.
_NUL, _NO_CHARACTER = "␀", "\ufffd"


def plain(text: str) -> str:
    if "\0" in text:
        text = text.replace("\0", _NUL)
    # Surrogates are rare, so texts without them are returned unchanged.
    if text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return "".join(_NO_CHARACTER if "\ud800" <= char <= "\udfff" else char for char in text)
