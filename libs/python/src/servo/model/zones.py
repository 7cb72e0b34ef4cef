"""Time zones by their IANA names, from the ``tzdata`` package.

Not from the system, because every machine must compute the same periods and know the same names.
"""

from __future__ import annotations

from datetime import UTC, tzinfo
from functools import cache

from servo.errors import InvalidValue

from .text import excerpt


@cache
def find_zone(name: str) -> tzinfo:
    """An empty name means UTC."""
    if name in ("", "UTC"):
        return UTC
    if name not in _names():
        raise InvalidValue(f"`{excerpt(name)}` is not an IANA time zone; write one such as `Europe/Berlin` or `UTC`")
    from importlib.resources import files
    from zoneinfo import ZoneInfo

    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as rules:
        return ZoneInfo.from_file(rules, key=name)


@cache
def _names() -> frozenset[str]:
    from importlib.resources import files

    return frozenset(files("tzdata").joinpath("zones").read_text().split())
