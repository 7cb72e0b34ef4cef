"""The storage of a value: the name of a format, or a user's class."""

from __future__ import annotations

from typing import Any

from servo.errors import InvalidValue

FORMATS = ("parquet", "json", "pickle")
# "parquet", "package.module.Name", or that class itself; empty chooses by the value.
Io = str | type[Any]


def io_name(given: Io) -> str:
    if isinstance(given, str):
        return given
    if isinstance(given, type):
        return f"{given.__module__}.{given.__qualname__}"
    raise InvalidValue(
        f"io is a value of type {type(given).__name__}; give a class with store and load, or {', '.join(FORMATS)}"
    )


def is_custom(given: Io) -> bool:
    return bool(given) and given not in FORMATS
