"""Takes secrets out of whatever leaves the worker, in the shapes that printing gives them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus

from .plain import plain

_REDACTED = "***"
# Shorter secrets would turn ordinary words into stars; so would shorter lines of one that has several.
_SECRET_CHARS_MIN = 3
_LINE_CHARS_MIN = 4


class Redactor:
    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        shapes = {shape for secret in (secrets or {}).values() for shape in _shapes(secret)}
        # The longest first: one secret may begin like another.
        ordered = sorted(shapes, key=lambda shape: (-len(shape), shape))
        self._longest = len(ordered[0]) if ordered else 0
        self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def __call__(self, text: str) -> str:
        """Without secrets, and then as it can be sent: a secret is looked for as user code wrote it."""
        return plain(self._pattern.sub(_REDACTED, text) if self._pattern else text)

    def cut_off(self, text: str) -> str:
        """Of a text that goes on where nobody looked: its end may be a secret's beginning."""
        told = self(text)
        return told[: max(len(told) - self._longest, 0)]

    def finds(self, text: str) -> bool:
        return self._pattern is not None and self._pattern.search(text) is not None


def _shapes(secret: str) -> Iterator[str]:
    """As it is, and as ``repr``, JSON, URLs and base64 write it; line by line when it has several."""
    if len(secret) < _SECRET_CHARS_MIN:
        return
    yield secret
    yield repr(secret)[1:-1]
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    # Of bytes, since the environment may hold what is no text.
    raw = secret.encode(errors="surrogateescape")
    encoded = [base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()]
    yield from (shape.rstrip("=") for shape in encoded)
    yield from (quote(raw, safe=""), quote(raw), quote_plus(raw))
    lines = (line.strip() for line in secret.splitlines())
    yield from (line for line in lines if len(line) >= _LINE_CHARS_MIN)
