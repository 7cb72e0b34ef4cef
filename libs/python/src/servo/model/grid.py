"""Grids of periods of one grain in a time zone: the values of a time dimension.

A period is a place, counted from the grid's first period; its value in keys is a date or, for
hours, a UTC instant. Days, weeks and months begin at local midnight, so a day may have 23 or 25
hours; hours follow each other evenly. Instants are whole seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from enum import Enum
from typing import NamedTuple, TypeVar

from servo.errors import InvalidValue

from .grain import Grain
from .partition_value import Value, ValueKind, from_text
from .zones import find_zone

_T = TypeVar("_T")
_HOUR = 3600
_EPOCH = datetime(1970, 1, 1)


class Misfit(Enum):
    """Why a value is not one of a grid's periods."""

    NOT_A_BEGINNING = "is not the beginning of a period of grain {grain}"
    BEFORE_START = "lies before the first partition"
    AFTER_END = "lies after the last partition"
    NEVER_WAS = "is a day that its zone skipped"


class NoGrid(InvalidValue):
    """An invalid grid, with the field that is wrong."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(f"{field}: {sentence}")
        self.field, self.sentence = field, sentence


class Span(NamedTuple):
    """From the beginning of a period to the beginning of the next."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class TimeGrid:
    grain: Grain
    zone: tzinfo
    # Seconds since 1970 for hours, a date otherwise.
    first: int | date
    # The number of periods, if the grid ends.
    count: int | None = None

    @classmethod
    def read(cls, grain: Grain, zone: str, start: str, end: str) -> TimeGrid:
        """An empty zone means UTC, an empty ``end`` means no end."""
        grid = cls(grain, _shown("time_zone", lambda: find_zone(zone)), _shown("start", lambda: _first(grain, start)))
        if not end:
            return grid
        return cls(grain, grid.zone, grid.first, _shown("end", lambda: grid._count_until(end)))

    @property
    def kind(self) -> ValueKind:
        return ValueKind.INSTANT if self.grain is Grain.HOUR else ValueKind.DATE

    def is_in_step_with(self, other: TimeGrid) -> bool:
        """Whether the periods of both coincide, regardless of where they begin and end."""
        first = other.value(0)
        zones_agree = self.grain is Grain.HOUR or self.zone == other.zone
        return (
            self.grain is other.grain
            and zones_agree
            and first is not None
            and self._place_of_beginning(first) is not None
        )

    def value(self, place: int) -> Value | None:
        """The value at a place, also beyond the grid's ends."""
        if isinstance(self.first, date):
            return self._date(place)
        return _instant(self.first + place * _HOUR)

    def place(self, value: Value) -> int | Misfit:
        """The place of a value, or why it is not one of the grid's periods."""
        place = self._place_of_beginning(value)
        if place is None:
            return Misfit.NOT_A_BEGINNING
        if place < 0:
            return Misfit.BEFORE_START
        if self.count is not None and place >= self.count:
            return Misfit.AFTER_END
        return place if self.is_real(place) else Misfit.NEVER_WAS

    def span(self, place: int) -> Span | None:
        start, end = self._beginning(place), self._beginning(place + 1)
        return None if start is None or end is None else Span(start, end)

    def is_real(self, place: int) -> bool:
        """False for a day that its zone skipped."""
        span = self.span(place)
        return span is not None and span.start < span.end

    def over(self, now: int) -> range:
        """The places of the periods that have ended at ``now``."""
        under_way = max(self._place_at(now), 0)
        return range(under_way if self.count is None else min(under_way, self.count))

    def overlapping(self, span: Span) -> range:
        """The places of the periods that overlap ``span``, also beyond the grid's ends."""
        return range(self._place_at(span.start), self._place_at(span.end - 1) + 1)

    def clip(self, places: range) -> range:
        """Removes places that the grid does not have."""
        end = places.stop if self.count is None else min(places.stop, self.count)
        return range(max(places.start, 0), end)

    def _place_at(self, at: int) -> int:
        if isinstance(self.first, date):
            return self._places_between(self.first, datetime.fromtimestamp(at, self.zone).date())
        return (at - self.first) // _HOUR

    def _place_of_beginning(self, value: Value) -> int | None:
        if not isinstance(self.first, date):
            seconds = _seconds(value) - self.first if isinstance(value, datetime) else 1
            return None if seconds % _HOUR else seconds // _HOUR
        if not isinstance(value, date) or isinstance(value, datetime):
            return None
        place = self._places_between(self.first, value)
        return place if self._date(place) == value else None

    def _beginning(self, place: int) -> int | None:
        if not isinstance(self.first, date):
            return self.first + place * _HOUR
        day = self._date(place)
        if day is None:
            return None
        midnight = datetime(day.year, day.month, day.day)
        # fold=0: the offset before a gap, and the first of two in an overlap.
        offset = self.zone.utcoffset(midnight.replace(tzinfo=self.zone)) or timedelta()
        return int((midnight - _EPOCH - offset).total_seconds())

    def _date(self, place: int) -> date | None:
        first = self.first
        if not isinstance(first, date):
            return None
        try:
            if self.grain is Grain.MONTH:
                months = first.year * 12 + first.month - 1 + place
                return date(months // 12, months % 12 + 1, 1)
            return first + timedelta(days=place * (7 if self.grain is Grain.WEEK else 1))
        except (ValueError, OverflowError):
            return None

    def _places_between(self, first: date, day: date) -> int:
        """The number of whole periods between the first one and a date, rounded down."""
        if self.grain is Grain.MONTH:
            return (day.year - first.year) * 12 + day.month - first.month
        return (day - first).days // (7 if self.grain is Grain.WEEK else 1)

    def _count_until(self, end: str) -> int:
        """The number of periods that begin before ``end``."""
        value = from_text(self.kind, end)
        if isinstance(value, datetime) and not isinstance(self.first, date):
            count = -((self.first - _seconds(value)) // _HOUR)
        elif isinstance(value, date) and isinstance(self.first, date):
            place = self._places_between(self.first, value)
            beginning = self._date(place)
            count = place + (beginning is not None and beginning < value)
        else:
            count = 0
        if count <= 0:
            raise InvalidValue("lies at or before the start; write a later one or leave it out")
        return count


def _first(grain: Grain, start: str) -> int | date:
    value = from_text(ValueKind.INSTANT if grain is Grain.HOUR else ValueKind.DATE, start)
    if isinstance(value, datetime):
        return _seconds(value)
    if not isinstance(value, date):
        raise InvalidValue("is neither a date nor an instant")
    if grain is Grain.MONTH and value.day != 1:
        raise InvalidValue(f"`{value}` is not the first of a month; months begin there, write {value.replace(day=1)}")
    return value


def _seconds(value: datetime) -> int:
    return int((value.astimezone(UTC).replace(tzinfo=None) - _EPOCH).total_seconds())


def _instant(seconds: int) -> datetime | None:
    try:
        return (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=UTC)
    except OverflowError:
        return None


def _shown(field: str, read: Callable[[], _T]) -> _T:
    try:
        return read()
    except InvalidValue as fault:
        raise NoGrid(field, str(fault)) from None
