"""Lengths of periods."""

from __future__ import annotations

from enum import IntEnum


class Grain(IntEnum):
    """The length of a period; the numbers are those of the proto's ``TimeGrain``."""

    HOUR = 1
    DAY = 2
    WEEK = 3
    MONTH = 4
