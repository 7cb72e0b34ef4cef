"""Periods in time zones, with the same table as in Rust."""

from __future__ import annotations

from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servo.model.grain import Grain
from servo.model.grid import Misfit, NoGrid, TimeGrid


def seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp())


def hours_of(zone: str, day: str) -> int:
    """The number of hours of a UTC grid in one day of a zone."""
    days = TimeGrid.read(Grain.DAY, zone, "2000-01-01", "")
    place = days.place(date.fromisoformat(day))
    assert isinstance(place, int)
    span = days.span(place)
    assert span
    return len(TimeGrid.read(Grain.HOUR, "UTC", "1999-12-01T00:00:00Z", "").overlapping(span))


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Berlin", "2026-03-28", 24),
        ("Europe/Berlin", "2026-03-29", 23),
        ("Europe/Berlin", "2026-10-25", 25),
        ("America/New_York", "2026-03-08", 23),
        ("America/New_York", "2026-11-01", 25),
        # Midnight is skipped or occurs twice.
        ("America/Sao_Paulo", "2018-11-04", 23),
        ("America/Havana", "2026-11-01", 25),
    ],
)
def test_days_have_the_hours_of_their_zone(zone: str, day: str, hours: int) -> None:
    assert hours_of(zone, day) == hours


def test_skipped_day_is_not_a_period() -> None:
    days = TimeGrid.read(Grain.DAY, "Pacific/Apia", "2011-12-28", "2012-01-02")
    assert days.place(date(2011, 12, 30)) is Misfit.NEVER_WAS
    assert [days.is_real(place) for place in range(5)] == [True, True, False, True, True]


def test_weeks_keep_the_weekday_and_months_begin_on_the_first() -> None:
    weeks = TimeGrid.read(Grain.WEEK, "", "2026-01-05", "")
    assert weeks.value(2) == date(2026, 1, 19)
    assert weeks.place(date(2026, 1, 20)) is Misfit.NOT_A_BEGINNING
    months = TimeGrid.read(Grain.MONTH, "", "2026-01-01", "")
    assert months.value(13) == date(2027, 2, 1)
    assert months.place(date(2027, 2, 1)) == 13
    assert months.place(date(2027, 2, 2)) is Misfit.NOT_A_BEGINNING


def test_period_ends_when_the_next_begins() -> None:
    days = TimeGrid.read(Grain.DAY, "Europe/Berlin", "2026-01-01", "2026-01-04")
    hours = TimeGrid.read(Grain.HOUR, "", "2026-01-01T00:30:00Z", "")
    for grid, now, over in [
        (days, "2025-06-01T00:00:00Z", 0),
        (days, "2026-01-01T22:59:59Z", 0),
        (days, "2026-01-01T23:00:00Z", 1),
        (days, "2030-01-01T00:00:00Z", 3),
        (hours, "2026-01-01T02:29:59Z", 1),
        (hours, "2026-01-01T00:29:59Z", 0),
    ]:
        assert grid.over(seconds(now)) == range(over), now


@pytest.mark.parametrize(
    ("grain", "start", "end", "count"),
    [
        (Grain.DAY, "2026-01-01", "2026-01-02", 1),
        (Grain.WEEK, "2026-01-01", "2026-01-08", 1),
        (Grain.WEEK, "2026-01-01", "2026-01-09", 2),
        (Grain.MONTH, "2026-01-01", "2026-02-02", 2),
        (Grain.HOUR, "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", 1),
        (Grain.HOUR, "2026-01-01T00:00:00Z", "2026-01-01T01:00:01Z", 2),
    ],
)
def test_end_excludes_periods_that_begin_at_or_after_it(grain: Grain, start: str, end: str, count: int) -> None:
    assert TimeGrid.read(grain, "", start, end).count == count


@pytest.mark.parametrize(
    ("grain", "zone", "start", "end", "field"),
    [
        (Grain.DAY, "Europe/Berlinn", "2026-01-01", "", "time_zone"),
        (Grain.DAY, "europe/berlin", "2026-01-01", "", "time_zone"),
        (Grain.DAY, "../zones", "2026-01-01", "", "time_zone"),
        (Grain.DAY, "", "2026-02-30", "", "start"),
        (Grain.DAY, "", "2026-01-01T00:00:00Z", "", "start"),
        (Grain.HOUR, "", "2026-01-01", "", "start"),
        (Grain.MONTH, "", "2026-01-02", "", "start"),
        (Grain.DAY, "", "2026-01-02", "2026-01-02", "end"),
        (Grain.DAY, "", "2026-01-02", "soon", "end"),
    ],
)
def test_invalid_grids_name_the_field(grain: Grain, zone: str, start: str, end: str, field: str) -> None:
    with pytest.raises(NoGrid) as raised:
        TimeGrid.read(grain, zone, start, end)
    assert raised.value.field == field


_ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/Havana", "Asia/Kolkata", "Australia/Lord_Howe"])


@given(st.sampled_from(Grain), _ZONES, st.integers(0, 20_000))
def test_places_and_values_round_trip(grain: Grain, zone: str, place: int) -> None:
    start = "2001-02-01T00:00:00Z" if grain is Grain.HOUR else "2001-02-01"
    grid = TimeGrid.read(grain, zone, start, "")
    value, span, next_span = grid.value(place), grid.span(place), grid.span(place + 1)
    assert value is not None
    assert span
    assert next_span
    assert grid.place(value) == place
    assert grid.overlapping(span) == range(place, place + 1)
    assert next_span.start == span.end
    assert grid.over(span.end) == range(place + 1)
