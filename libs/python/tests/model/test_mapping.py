"""Partition mappings, with the same table as in Rust."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servo.errors import InvalidValue
from servo.model import declared_mapping
from servo.model.declared_mapping import DeclaredRule
from servo.model.grain import Grain
from servo.model.grid import TimeGrid
from servo.model.partition_key import PartitionKey
from servo.model.partitioning import Dimension, Dynamic, Fixed, Moment, OutOfRange, Partitioning


def moment(now: str, **sets: list[str]) -> Moment:
    return Moment(int(datetime.fromisoformat(now).timestamp()), sets)


NOW = moment("2027-01-01T00:00:00Z")


def time(name: str, grain: Grain, zone: str, start: str) -> Dimension:
    return Dimension(name, TimeGrid.read(grain, zone, start, ""))


def fixed(name: str, *values: str) -> Dimension:
    return Dimension(name, Fixed(values))


def days(zone: str = "") -> Partitioning:
    return Partitioning([time("day", Grain.DAY, zone, "2026-01-01")])


HOURS = Partitioning([time("hour", Grain.HOUR, "", "2026-01-01T00:00:00Z")])
REGIONS = Partitioning([fixed("region", "eu", "us")])


def reads(up: Partitioning, down: Partitioning, rules: list[DeclaredRule], key: str) -> list[str]:
    keys = declared_mapping.resolve(up, down, rules).upstream(up, down, PartitionKey.parse(key), NOW)
    return [str(key) for key in keys]


def test_different_grains_map_by_overlap() -> None:
    long = reads(HOURS, days("Europe/Berlin"), [], "day=d:2026-10-25")
    assert (len(long), long[0], long[24]) == (25, "hour=t:2026-10-24T22:00:00Z", "hour=t:2026-10-25T22:00:00Z")
    assert len(reads(HOURS, days("Europe/Berlin"), [], "day=d:2026-03-29")) == 23
    weeks = Partitioning([time("week", Grain.WEEK, "", "2026-01-05")])
    assert reads(weeks, days(), [], "day=d:2026-01-14") == ["week=d:2026-01-12"]
    assert reads(weeks, days(), [], "day=d:2026-01-02") == []


def test_one_to_one_depends_on_definitions_only() -> None:
    def one_to_one(up: Partitioning, down: Partitioning | None, *rules: DeclaredRule) -> bool:
        return declared_mapping.resolve(up, down, list(rules)).is_one_to_one(up, down)

    def of(name: str, grain: Grain, start: str) -> Partitioning:
        return Partitioning([time(name, grain, "", start)])

    def window(start: int, end: int) -> DeclaredRule:
        return DeclaredRule("day", "day", declared_mapping.Window(start, end))

    later = of("day", Grain.DAY, "2026-02-01")
    assert one_to_one(days(), later)
    assert one_to_one(later, days(), window(0, 0))
    assert one_to_one(days(), of("date", Grain.DAY, "2026-03-01"))
    assert not one_to_one(days(), days("Europe/Berlin"))
    assert not one_to_one(days(), later, window(-1, -1))
    assert not one_to_one(days(), None)
    assert not one_to_one(HOURS, days())
    mondays = of("week", Grain.WEEK, "2026-01-05")
    assert one_to_one(mondays, of("week", Grain.WEEK, "2026-03-02"))
    assert not one_to_one(mondays, of("week", Grain.WEEK, "2026-01-06"))
    assert one_to_one(Partitioning([fixed("region", "eu")]), REGIONS)
    assert not one_to_one(REGIONS, days())


def test_windows_shift_and_widen() -> None:
    def window(start: int, end: int, key: str) -> list[str]:
        return reads(days(), days(), [DeclaredRule("day", "day", declared_mapping.Window(start, end))], key)

    read = window(-6, 0, "day=d:2026-01-10")
    assert (len(read), read[0], read[6]) == (7, "day=d:2026-01-04", "day=d:2026-01-10")
    assert len(window(-6, 0, "day=d:2026-01-02")) == 2
    assert window(-1, -1, "day=d:2026-01-02") == ["day=d:2026-01-01"]
    assert window(3, 0, "day=d:2026-01-02") == []


def test_all_latest_and_table_rules() -> None:
    zones = Partitioning([fixed("zone", "e1", "e2", "u1")])
    assert len(reads(zones, REGIONS, [], "region=s:eu")) == 3
    table = [DeclaredRule("zone", "region", declared_mapping.Table((("eu", ("e1", "e2")),)))]
    assert reads(zones, REGIONS, table, "region=s:eu") == ["zone=s:e1", "zone=s:e2"]
    assert reads(zones, REGIONS, table, "region=s:us") == []
    latest = [DeclaredRule("day", "", declared_mapping.Latest(2))]
    assert reads(days(), REGIONS, latest, "region=s:eu") == ["day=d:2026-12-30", "day=d:2026-12-31"]
    both = Partitioning([time("day", Grain.DAY, "", "2026-01-01"), fixed("region", "eu", "asia")])
    assert reads(REGIONS, both, [], "day=d:2026-01-01,region=s:eu") == ["region=s:eu"]
    assert reads(REGIONS, both, [], "day=d:2026-01-01,region=s:asia") == []
    assert len(declared_mapping.resolve(REGIONS, None, []).upstream(REGIONS, None, None, NOW)) == 2


def test_wrong_rules_are_reported() -> None:
    rules = [
        DeclaredRule("moon", "day", declared_mapping.Identity()),
        DeclaredRule("day", "moon", declared_mapping.Identity()),
        DeclaredRule("day", "region", declared_mapping.Window()),
        DeclaredRule("day", "region", declared_mapping.Identity()),
        DeclaredRule("day", "day", declared_mapping.Latest(1)),
        DeclaredRule("day", "", declared_mapping.Latest(0)),
        DeclaredRule("day", "region", declared_mapping.Table((("mars", ()),))),
        DeclaredRule("day", "day", declared_mapping.Window(-(2**31), 0)),
    ]
    down = Partitioning([time("day", Grain.DAY, "", "2026-01-01"), fixed("region", "eu")])
    with pytest.raises(declared_mapping.NoMapping) as raised:
        declared_mapping.resolve(days(), down, rules)
    assert [(fault.index, fault.field) for fault in raised.value.faults] == [
        (0, "upstream"),
        (1, "downstream"),
        (2, "window"),
        (3, "identity"),
        (4, "downstream"),
        (5, "latest"),
        (6, "table"),
        (7, "window"),
    ]


@given(
    st.sampled_from(Grain),
    st.sampled_from(Grain),
    st.sampled_from(["UTC", "Europe/Berlin"]),
    st.sampled_from(["UTC", "America/Havana"]),
    st.tuples(st.integers(-3, 2), st.integers(-3, 2)),
    st.integers(0, 199),
)
def test_downstream_is_the_inverse_of_upstream(
    up_grain: Grain, down_grain: Grain, up_zone: str, down_zone: str, window: tuple[int, int], place: int
) -> None:
    def partitioning(grain: Grain, zone: str) -> tuple[Partitioning, TimeGrid]:
        start = "2026-01-01T00:00:00Z" if grain is Grain.HOUR else "2026-01-01"
        grid = TimeGrid.read(grain, zone, start, "")
        return Partitioning([Dimension("t", grid)]), grid

    def key_at(grid: TimeGrid, place: int) -> PartitionKey:
        value = grid.value(place)
        assert value is not None
        return PartitionKey(t=value)

    (up, up_grid), (down, down_grid) = partitioning(up_grain, up_zone), partitioning(down_grain, down_zone)
    mapping = declared_mapping.resolve(up, down, [DeclaredRule("t", "t", declared_mapping.Window(*window))])
    now, key = moment("2046-01-01T00:00:00Z"), key_at(up_grid, place)
    readers = mapping.downstream(up, down, key, now)
    span = up_grid.span(place)
    assert readers is not None
    assert span
    near = down_grid.overlapping(span)
    nearby = [key_at(down_grid, place) for place in range(max(near.start - 8, 0), near.stop + 8)]
    for other in {*nearby, *readers}:
        assert (key in mapping.upstream(up, down, other, now)) == (other in readers)


def test_existing_partitions_depend_on_the_moment() -> None:
    early = moment("2026-01-03T00:00:00Z", tenants=["acme"])
    assert [str(key) for key in days().all(early)] == ["day=d:2026-01-01", "day=d:2026-01-02"]
    with pytest.raises(OutOfRange, match="is not over yet"):
        days().check(PartitionKey.parse("day=d:2026-01-03"), early)
    with pytest.raises(OutOfRange, match="lies before the first partition"):
        days().check(PartitionKey.parse("day=d:2025-01-03"), early)
    with pytest.raises(InvalidValue, match="does not name the dimensions day"):
        days().check(PartitionKey.parse("hour=i:1"), early)
    dynamic = Partitioning([Dimension("tenant", Dynamic("tenants"))])
    assert [str(key) for key in dynamic.all(early)] == ["tenant=s:acme"]
    with pytest.raises(InvalidValue, match="add it to the dynamic partition set `tenants` first"):
        dynamic.check(PartitionKey(tenant="other"), early)


def test_true_and_one_are_different_values() -> None:
    numbers = Partitioning([Dimension("n", Fixed((1, 0)))])
    numbers.check(PartitionKey(n=1), NOW)
    with pytest.raises(InvalidValue, match="`n` has no value `b:true`"):
        numbers.check(PartitionKey(n=True), NOW)


def test_ranges_are_inclusive() -> None:
    (day,) = days().dimensions
    assert len(day.between("2026-01-02", "2026-01-04", NOW)) == 3
    assert len(day.between("2026-12-30", "", NOW)) == 2
    with pytest.raises(InvalidValue, match="swap them"):
        day.between("2026-01-04", "2026-01-02", NOW)
