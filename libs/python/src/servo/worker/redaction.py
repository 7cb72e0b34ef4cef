"""Takes secrets out of whatever leaves the worker, in the shapes that printing gives them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from urllib.parse import quote, quote_plus

from .sanitize import plain

_REDACTED = "***"
# Shorter secrets would turn ordinary words into stars; so would shorter lines of one that has several.
_SECRET_CHARS_MIN = 3
_LINE_CHARS_MIN = 4
# Secrets change, and a worker lives long: what was read longest ago is forgotten first.
_SECRETS_MAX = 1_000
_SHAPES_CHARS_MAX = 16 * 1024 * 1024


class Redactor:
    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        # By secret; what was read last comes last.
        self._shapes_of: dict[str, frozenset[str]] = {}
        # The longest first: one secret may begin like another.
        self._shapes: list[str] = []
        self.learn(secrets or {})

    def learn(self, secrets: Mapping[str, str]) -> None:
        """Takes these out from now on, besides those that it knows. Costs next to nothing when it knows them all."""
        known = self._shapes_of
        new = {secret: frozenset(_shapes(secret)) for secret in secrets.values() if secret not in known}
        for secret in secrets.values():
            known[secret] = new[secret] if secret in new else known.pop(secret)
        if new:
            self._forget_oldest(len(secrets))
            shapes = {shape for each in known.values() for shape in each}
            self._shapes = sorted(shapes, key=lambda shape: (-len(shape), shape))

    def __call__(self, text: str) -> str:
        """Without secrets, and then as it can be sent: a secret is looked for as user code wrote it."""
        # One after the other: a pattern of them all would take long to make, and longer to look for.
        for shape in self._shapes:
            text = text.replace(shape, _REDACTED)
        return plain(text)

    def cut_off(self, text: str) -> str:
        """Of a text that goes on where nobody looked: its end may be a secret's beginning."""
        begun = (len(shape) for shape in self._shapes if shape[:_SECRET_CHARS_MIN] in text[-len(shape) :])
        text_fields = self(text)
        return text_fields[: max(len(text_fields) - max(begun, default=_SECRET_CHARS_MIN), 0)]

    def finds(self, text: str) -> bool:
        return any(shape in text for shape in self._shapes)

    def _forget_oldest(self, newest: int) -> None:
        """Never one of those that were read just now."""
        known = self._shapes_of
        chars = sum(len(shape) for each in known.values() for shape in each)
        while len(known) > newest and (len(known) > _SECRETS_MAX or chars > _SHAPES_CHARS_MAX):
            chars -= sum(map(len, known.pop(next(iter(known)))))


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
