"""Canonical JSON: one spelling per value, for everything that is hashed or signed.

Keys are sorted by code point, there is no white space, and numbers are integers. Floats, duplicate
keys, lone surrogates and deep nesting are errors, because two languages would treat them
differently.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import NoReturn

from servo.errors import InvalidValue

from .limits import INT64_MIN, JSON_DEPTH_MAX, UINT64_MAX

Json = None | bool | int | str | Sequence["Json"] | Mapping[str, "Json"]


class NotCanonical(InvalidValue):
    """A value or a text without a canonical form."""


def canonical(value: Json) -> str:
    """The canonical text of the value."""
    _check(value, "", 0)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha256_hex(value: Json) -> str:
    """The sha256 of the canonical text, as 64 hexadecimal digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def parse(text: str) -> Json:
    """Reads JSON in any order and spacing, if the value has a canonical form."""
    try:
        value: Json = json.loads(
            text,
            parse_float=_refuse_float,
            parse_int=_integer,
            parse_constant=_refuse_float,
            object_pairs_hook=_members,
        )
    except RecursionError:
        _fail("", f"arrays and objects may nest at most {JSON_DEPTH_MAX} deep")
    except json.JSONDecodeError as error:
        raise NotCanonical(f"at character {error.pos}: {error.msg}") from None
    _check(value, "", 0)
    return value


def _check(value: Json, path: str, depth: int) -> None:
    match value:
        case None | bool():
            return
        case str():
            _check_text(value, path)
        case int():
            if not INT64_MIN <= value <= UINT64_MAX:
                _fail(path, f"the integer is outside {INT64_MIN} to {UINT64_MAX}; write it as a string")
        case float():
            _fail(path, "floats have no canonical form; write an integer of a smaller unit or a decimal string")
        case Mapping() | list() | tuple():
            if depth >= JSON_DEPTH_MAX:
                _fail(path, f"arrays and objects may nest at most {JSON_DEPTH_MAX} deep")
            _check_inside(value, path, depth + 1)
        case _:
            _fail(path, f"a value of type {type(value).__name__} has no canonical form")


def _check_inside(value: Mapping[str, Json] | Sequence[Json], path: str, depth: int) -> None:
    if not isinstance(value, Mapping):
        for index, item in enumerate(value):
            _check(item, f"{path}[{index}]", depth)
        return
    for key, item in value.items():
        if not isinstance(key, str):
            _fail(path, "an object's keys are strings")
        _check_text(key, path)
        _check(item, f"{path}.{key}", depth)


def _check_text(text: str, path: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        _fail(path, "a surrogate without its other half is not a character")


def _integer(text: str) -> int:
    if text == "-0":
        raise NotCanonical("-0 has no canonical form; write 0")
    if len(text) > len(str(INT64_MIN)):
        raise NotCanonical(f"the integer {text[:20]}… is too large; write it as a string")
    return int(text)


def _refuse_float(text: str) -> NoReturn:
    raise NotCanonical(f"{text}: floats have no canonical form; write an integer or a decimal string")


def _members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise NotCanonical(f"the key {json.dumps(twice)} appears twice in one object; keep one")
    return members


def _fail(path: str, sentence: str) -> NoReturn:
    raise NotCanonical(f"at {path or 'the root'}: {sentence}")
