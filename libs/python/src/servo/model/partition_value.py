"""A typed value of a partition's dimension, and its canonical text.

Represented by Python's own types: ``str``, ``int``, ``bool``, ``date``, and ``datetime`` in UTC
with whole seconds.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from enum import IntEnum

from servo.errors import InvalidValue

from .limits import INT64_MAX, INT64_MIN
from .text import excerpt

Value = str | int | bool | date | datetime

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_ENCODED = re.compile(rb"%([0-9A-F]{2})")
_INTEGER_CHARS_MAX = 20
# The last instant that is in year 9999 in every zone.
_INSTANT_MAX = datetime(9999, 12, 30, 22, tzinfo=UTC)


class ValueKind(IntEnum):
    """The type of a value; the numbers are those of the proto's ``ValueType``."""

    STRING = 1
    INTEGER = 2
    BOOL = 3
    DATE = 4
    INSTANT = 5

    @property
    def tag(self) -> str:
        return "sibdt"[self - 1]


_KINDS = {kind.tag: kind for kind in ValueKind}
_FAULTS = {
    ValueKind.STRING: "an encoded string: write %XX, in upper case, for every byte outside A-Za-z0-9-._~",
    ValueKind.INTEGER: "an integer: write decimal digits without leading zeros, from -2^63 to 2^63-1",
    ValueKind.BOOL: "a bool: write true or false",
    ValueKind.DATE: "a date: write YYYY-MM-DD, from year 0001 on",
    ValueKind.INSTANT: "a UTC instant: write YYYY-MM-DDThh:mm:ssZ in whole seconds, from year 0001 on",
}


def kind_of(value: Value) -> ValueKind:
    match value:
        case bool():
            return ValueKind.BOOL
        case int():
            return ValueKind.INTEGER
        case str():
            return ValueKind.STRING
        case datetime():
            return ValueKind.INSTANT
        case date():
            return ValueKind.DATE
        case _:
            raise InvalidValue(
                f"a value of type {type(value).__name__} is not a partition value: use str, int, bool, date or a "
                "datetime in UTC"
            )


def write(value: Value) -> str:
    """``tag:value``, as in keys."""
    kind = kind_of(value)
    _check(kind, value)
    text = _encode(str(value)) if kind is ValueKind.STRING else plain_text(value)
    return f"{kind.tag}:{text}"


def plain_text(value: Value) -> str:
    """Without the tag, as in user input and manifests."""
    match value:
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")
        case date():
            return value.isoformat()
        case _:
            return str(value)


def read(tag: str, text: str) -> Value:
    """Reads a value from the texts before and after the first ``:``."""
    kind = _KINDS.get(tag)
    if kind is None:
        raise InvalidValue(
            f"`{excerpt(tag)}` is not a tag; the tags are s (string), i (integer), b (bool), d (date) and "
            "t (UTC instant)"
        )
    value = _decode(text) if kind is ValueKind.STRING else _read_plain(kind, text)
    if value is None:
        raise InvalidValue(f"`{excerpt(text)}` is not {_FAULTS[kind]}")
    return value


def from_text(kind: ValueKind, text: str) -> Value:
    """Reads a value without tag; strings are unescaped already."""
    return text if kind is ValueKind.STRING else read(kind.tag, text)


def _check(kind: ValueKind, value: Value) -> None:
    """Refuses values that the type allows but the text cannot represent."""
    match value:
        case bool() | str():
            fits = True
        case int():
            fits = INT64_MIN <= value <= INT64_MAX
        case datetime():
            fits = value.tzinfo is not None and value.microsecond == 0 and value <= _INSTANT_MAX
        case _:
            fits = True
    if not fits:
        raise InvalidValue(f"`{value}` is not {_FAULTS[kind]}")


def _read_plain(kind: ValueKind, text: str) -> Value | None:
    match kind:
        case ValueKind.INTEGER:
            return _read_integer(text)
        case ValueKind.BOOL:
            return {"true": True, "false": False}.get(text)
        case ValueKind.DATE:
            return _read_date(text)
        case _:
            return _read_instant(text)


def _read_integer(text: str) -> int | None:
    if len(text) > _INTEGER_CHARS_MAX or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if INT64_MIN <= number <= INT64_MAX else None


def _read_date(text: str) -> date | None:
    if not _DATE.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _read_instant(text: str) -> datetime | None:
    if not _INSTANT.fullmatch(text):
        return None
    try:
        value = datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None
    # A leap second would be read as the next minute.
    return value if value <= _INSTANT_MAX and plain_text(value) == text else None


def _encode(text: str) -> str:
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raise InvalidValue("a surrogate without its other half is not a character") from None
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in raw)


def _decode(text: str) -> str | None:
    """The decoded text, or ``None`` if encoding it does not give the same text."""
    if not text.isascii():
        return None
    try:
        decoded = _ENCODED.sub(lambda found: bytes.fromhex(found[1].decode()), text.encode()).decode()
    except UnicodeDecodeError:
        return None
    return decoded if _encode(decoded) == text else None
