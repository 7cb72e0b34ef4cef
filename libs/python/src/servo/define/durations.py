"""Lengths of time as people write them."""

from __future__ import annotations

import re
from datetime import timedelta

from servo.errors import InvalidValue

# Seconds, a timedelta, or a text such as "90s", "5m", "1h 30m", "2d".
Duration = timedelta | int | float | str

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|d)\s*")


def read_duration(given: Duration) -> timedelta:
    if isinstance(given, timedelta):
        return given
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        raise _refusal(given)
    if not isinstance(given, str):
        return timedelta(seconds=given)
    parts = _PART.findall(given)
    if not parts or _PART.sub("", given):
        raise _refusal(given)
    return timedelta(seconds=sum(float(number) * _UNITS[unit] for number, unit in parts))


def _refusal(given: object) -> InvalidValue:
    return InvalidValue(
        f"`{given}` is no length of time: write seconds, a timedelta, or a text such as 90s, 5m or 1h 30m"
    )
