"""How an asset is divided into partitions.

One dimension: ``Daily("2026-01-01", zone="Europe/Berlin")``. Several:
``Partitions(day=Daily("2026-01-01"), region=Static("eu", "us"))``. :mod:`servo.model` computes
which partitions exist and validates them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import ClassVar

from servo.errors import InvalidValue
from servo.model.grain import Grain
from servo.model.partition_value import Value, ValueKind, kind_of, plain_text


@dataclass(frozen=True, slots=True)
class _Time:
    """``start`` is the first period, ``end`` the first period after the last; ``zone`` is an IANA name."""

    grain: ClassVar[Grain]
    default_name: ClassVar[str]

    start: str | date | datetime
    end: str | date | datetime | None = None
    zone: str = ""

    @property
    def start_text(self) -> str:
        return _text(self.start)

    @property
    def end_text(self) -> str:
        return "" if self.end is None else _text(self.end)


class Hourly(_Time):
    """Keys are UTC instants: ``hour=t:2026-01-31T05:00:00Z``."""

    grain = Grain.HOUR
    default_name = "hour"


class Daily(_Time):
    """Keys are dates: ``day=d:2026-01-31``."""

    grain = Grain.DAY
    default_name = "day"


class Weekly(_Time):
    """Keys are the first dates of weeks, all on the weekday of ``start``."""

    grain = Grain.WEEK
    default_name = "week"


class Monthly(_Time):
    """Keys are the first dates of months."""

    grain = Grain.MONTH
    default_name = "month"


@dataclass(frozen=True, slots=True, init=False)
class Static:
    """A fixed list of values of one type, in order."""

    default_name: ClassVar[str] = "key"

    values: tuple[Value, ...]

    def __init__(self, *values: Value) -> None:
        object.__setattr__(self, "values", values)
        if len({kind_of(value) for value in values}) > 1:
            raise InvalidValue(f"the values {', '.join(map(repr, values[:5]))} are of several types; use one")

    @property
    def kind(self) -> ValueKind:
        return kind_of(self.values[0]) if self.values else ValueKind.STRING


@dataclass(frozen=True, slots=True)
class Dynamic:
    """Values that are added and removed through the API, shared by all assets that name the same set."""

    default_name: ClassVar[str] = "key"

    set: str


Dimension = Hourly | Daily | Weekly | Monthly | Static | Dynamic


@dataclass(frozen=True, slots=True, init=False)
class Partitions:
    """The product of named dimensions."""

    dimensions: Mapping[str, Dimension]

    def __init__(self, **dimensions: Dimension) -> None:
        if not dimensions:
            raise InvalidValue('Partitions has no dimension; write Partitions(day=Daily("2026-01-01")) or leave it out')
        object.__setattr__(self, "dimensions", dimensions)

    @classmethod
    def of(cls, given: Partitions | Dimension) -> Partitions:
        """A single dimension gets the default name: hour, day, week, month or key."""
        return given if isinstance(given, Partitions) else cls(**{given.default_name: given})


def _text(given: str | date | datetime) -> str:
    return given if isinstance(given, str) else plain_text(given)
