"""Durations as users write them."""

from __future__ import annotations

import re
from datetime import timedelta

from servo.errors import InvalidValue
from servo.model.text import excerpt

# Seconds, a timedelta, or a text such as "90s", "5m", "1h 30m", "2d".
Duration = timedelta | int | float | str

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|d)\s*")


def read_duration(given: Duration, field: str = "") -> timedelta:
    """``field`` names the argument in error messages."""
    if isinstance(given, timedelta):
        return given
    try:
        return timedelta(seconds=_seconds(given))
    # Infinite, NaN, or longer than a timedelta allows.
    except (OverflowError, ValueError):
        raise InvalidValue(
            f"{field}{': ' if field else ''}`{excerpt(str(given))}` is not a duration: write seconds, a timedelta, "
            "or a text such as 90s, 5m or 1h 30m"
        ) from None


def _seconds(given: object) -> float:
    if isinstance(given, int | float) and not isinstance(given, bool):
        return given
    parts = _PART.findall(given) if isinstance(given, str) else []
    if not isinstance(given, str) or not parts or _PART.sub("", given):
        raise ValueError
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
