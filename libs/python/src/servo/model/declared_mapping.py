"""Mapping rules as a manifest declares them, and their faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from servo.errors import InvalidValue

from . import mapping
from .grid import TimeGrid
from .limits import WINDOW_PERIODS_MAX
from .mapping import PartitionMapping, Rule
from .partition_value import Value, ValueKind, from_text
from .partitioning import Dimension, Fixed, Partitioning, typed
from .text import excerpt


@dataclass(frozen=True, slots=True)
class Identity:
    pass


@dataclass(frozen=True, slots=True)
class Window:
    """Offsets in upstream periods."""

    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class All:
    pass


@dataclass(frozen=True, slots=True)
class Latest:
    count: int


@dataclass(frozen=True, slots=True)
class Table:
    """Downstream value to upstream values, as texts."""

    lines: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class DeclaredRule:
    upstream: str
    # The downstream dimension that the rule depends on; empty for All and Latest.
    downstream: str
    rule: Identity | Window | All | Latest | Table


@dataclass(frozen=True, slots=True)
class MappingFault:
    index: int
    field: str
    sentence: str


class NoMapping(InvalidValue):
    def __init__(self, faults: list[MappingFault]) -> None:
        super().__init__(faults[0].sentence)
        self.faults = faults


class _Wrong(Exception):
    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field, self.sentence = field, sentence


def resolve(up: Partitioning, down: Partitioning | None, declared: Sequence[DeclaredRule]) -> PartitionMapping:
    """Checks the declared rules and adds the default ones. ``down`` is ``None`` for an unpartitioned asset."""
    rules: dict[int, Rule] = {}
    faults = []
    for index, rule in enumerate(declared):
        try:
            place, made = _place_rule(up, down, rule, rules)
            rules[place] = made
        except _Wrong as wrong:
            faults.append(MappingFault(index, wrong.field, wrong.sentence))
    if faults:
        raise NoMapping(faults)
    defaults = (_default_rule(up, dimension, down) for dimension in up.dimensions)
    return PartitionMapping(tuple(rules.get(place, rule) for place, rule in enumerate(defaults)))


def _place_rule(
    up: Partitioning, down: Partitioning | None, declared: DeclaredRule, taken: dict[int, Rule]
) -> tuple[int, Rule]:
    place = up.position(declared.upstream)
    if place is None:
        raise _Wrong("upstream", f"the upstream asset has no dimension `{excerpt(declared.upstream)}`")
    if place in taken:
        raise _Wrong("upstream", f"the dimension `{declared.upstream}` has a rule already; keep one")
    dimension = up.dimensions[place]
    match declared.rule:
        case All():
            _no_driver(declared)
            return place, mapping.All()
        case Latest(count):
            if count == 0:
                raise _Wrong("latest", "is 0; write at least 1")
            _no_driver(declared)
            return place, mapping.Latest(count)
        case Identity():
            return place, _same(dimension, _driver(down, declared.downstream))
        case Window() as window:
            return place, _window(dimension, _driver(down, declared.downstream), window)
        case Table() as table:
            return place, _table(table, dimension, _driver(down, declared.downstream))


def _no_driver(declared: DeclaredRule) -> None:
    if declared.downstream:
        raise _Wrong("downstream", "this rule depends on no downstream dimension; leave it empty")


def _driver(down: Partitioning | None, name: str) -> tuple[int, Dimension]:
    place = down.position(name) if down else None
    if down is None or place is None:
        raise _Wrong("downstream", f"this asset has no dimension `{excerpt(name)}`")
    return place, down.dimensions[place]


def _same(dimension: Dimension, driver: tuple[int, Dimension]) -> Rule:
    if driver[1].kind is not dimension.kind:
        raise _Wrong("identity", "the two dimensions have values of different types; use a table")
    return mapping.Same(driver[0])


def _window(dimension: Dimension, driver: tuple[int, Dimension], window: Window) -> Rule:
    if not all(isinstance(side.values, TimeGrid) for side in (dimension, driver[1])):
        raise _Wrong("window", "a window lies between two dimensions of time")
    if max(abs(window.start), abs(window.end)) > WINDOW_PERIODS_MAX:
        raise _Wrong("window", f"an offset is beyond {WINDOW_PERIODS_MAX} periods")
    return mapping.Window(driver[0], window.start, window.end)


def _table(table: Table, dimension: Dimension, driver: tuple[int, Dimension]) -> Rule:
    entries: dict[tuple[ValueKind, str], tuple[Value, list[Value]]] = {}
    for downstream, upstream in table.lines:
        reader = _table_value(driver[1], downstream)
        if typed(reader) in entries:
            raise _Wrong("table", f"the value `{excerpt(downstream)}` appears twice; keep one")
        entries[typed(reader)] = reader, [_table_value(dimension, text) for text in upstream]
    return mapping.Table(driver[0], entries)


def _table_value(dimension: Dimension, text: str) -> Value:
    try:
        value = from_text(dimension.kind, text)
    except InvalidValue as fault:
        raise _Wrong("table", str(fault)) from None
    match dimension.values:
        case Fixed(values) if typed(value) not in map(typed, values):
            raise _Wrong("table", f"the dimension `{dimension.name}` has no value `{excerpt(text)}`")
    return value


def _default_rule(up: Partitioning, dimension: Dimension, down: Partitioning | None) -> Rule:
    """The default rule of an upstream dimension."""
    if down is None:
        return mapping.All()
    namesake = down.position(dimension.name)
    if not isinstance(dimension.values, TimeGrid):
        same = namesake is not None and down.dimensions[namesake].kind is dimension.kind
        return mapping.Same(namesake) if same and namesake is not None else mapping.All()
    if namesake is not None and isinstance(down.dimensions[namesake].values, TimeGrid):
        return mapping.Window(namesake, 0, 0)
    only = _only_time(down) if _only_time(up) is not None else None
    return mapping.All() if only is None else mapping.Window(only, 0, 0)


def _only_time(partitioning: Partitioning) -> int | None:
    times = [place for place, dimension in enumerate(partitioning.dimensions) if isinstance(dimension.values, TimeGrid)]
    return times[0] if len(times) == 1 else None
