"""Texts of user code as every store takes them: Postgres has no NUL, and UTF-8 no half of a pair."""

from __future__ import annotations

# The signs that stand for what cannot be sent.
_NUL, _NO_CHARACTER = "␀", "\ufffd"


def plain(text: str) -> str:
    if "\0" in text:
        text = text.replace("\0", _NUL)
    # Surrogates are rare, and a text without them is not walked through.
    if text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text):
        return text
    return "".join(_NO_CHARACTER if "\ud800" <= char <= "\udfff" else char for char in text)
