"""Removes secrets from everything that leaves the worker, in all forms in which they may be printed."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus

from .sanitize import plain

_REDACTED = "***"
# Shorter secrets would redact ordinary words; so would shorter lines of a multi-line secret.
_SECRET_CHARS_MIN = 3
_LINE_CHARS_MIN = 4
# A worker is long-lived and secrets change, so the least recently read are dropped first.
_SECRETS_MAX = 1_000
_SHAPES_CHARS_MAX = 16 * 1024 * 1024


class Redactor:
    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        # Forms by secret, most recently read last.
        self._shapes_of: dict[str, frozenset[str]] = {}
        # Longest first, because one secret may be a prefix of another.
        self._shapes: list[str] = []
        self.learn(secrets or {})

    def learn(self, secrets: Mapping[str, str]) -> None:
        """Adds secrets. Cheap if all are known."""
        known = self._shapes_of
        new = {secret: frozenset(_shapes(secret)) for secret in secrets.values() if secret not in known}
        for secret in secrets.values():
            known[secret] = new[secret] if secret in new else known.pop(secret)
        if new:
            self._forget_oldest(len(secrets))
            shapes = {shape for each in known.values() for shape in each}
            self._shapes = sorted(shapes, key=lambda shape: (-len(shape), shape))

    def __call__(self, text: str) -> str:
        """The text without secrets, then sanitized for sending, because secrets must be searched in
        the original text.
        """
        # One by one, because a pattern of all of them is slower to build and to search.
        for shape in self._shapes:
            text = text.replace(shape, _REDACTED)
        return plain(text)

    def cut_off(self, text: str) -> str:
        """Drops the end of a truncated text if it may be the beginning of a secret."""
        begun = (len(shape) for shape in self._shapes if shape[:_SECRET_CHARS_MIN] in text[-len(shape) :])
        redacted = self(text)
        return redacted[: max(len(redacted) - max(begun, default=_SECRET_CHARS_MIN), 0)]

    def finds(self, text: str) -> bool:
        return any(shape in text for shape in self._shapes)

    def _forget_oldest(self, newest: int) -> None:
        """Never drops the secrets that were read just now."""
        known = self._shapes_of
        chars = sum(len(shape) for each in known.values() for shape in each)
        while len(known) > newest and (len(known) > _SECRETS_MAX or chars > _SHAPES_CHARS_MAX):
            chars -= sum(map(len, known.pop(next(iter(known)))))


def _shapes(secret: str) -> Iterator[str]:
    """The secret as it is, and as ``repr``, JSON, URLs and base64 encode it; line by line if it has several lines."""
    if len(secret) < _SECRET_CHARS_MIN:
        return
    yield secret
    yield repr(secret)[1:-1]
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    # From bytes, because environment variables may not be valid text.
    raw = secret.encode(errors="surrogateescape")
    encoded = [base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode()]
    yield from (shape.rstrip("=") for shape in encoded)
    yield from (quote(raw, safe=""), quote(raw), quote_plus(raw))
    lines = (line.strip() for line in secret.splitlines())
    yield from (line for line in lines if len(line) >= _LINE_CHARS_MIN)
