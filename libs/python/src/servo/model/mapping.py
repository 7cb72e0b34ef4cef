"""The partitions of an upstream asset that one partition of a downstream asset reads.

By default an upstream dimension follows the downstream one of the same name and type, a time
follows the only other time, and everything else is read whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .grid import TimeGrid
from .partition_key import PartitionKey
from .partition_value import Value, ValueKind
from .partitioning import Dimension, Moment, Partitioning, typed

_Typed = tuple[ValueKind, str]


@dataclass(frozen=True, slots=True)
class Same:
    down: int


@dataclass(frozen=True, slots=True)
class Window:
    down: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class All:
    pass


@dataclass(frozen=True, slots=True)
class Latest:
    count: int


@dataclass(frozen=True, slots=True)
class Table:
    down: int
    entries: Mapping[_Typed, tuple[Value, Sequence[Value]]]


# ``down`` is the index of a dimension in the downstream partitioning.
Rule = Same | Window | All | Latest | Table


@dataclass(frozen=True, slots=True)
class PartitionMapping:
    """One rule per upstream dimension, in order."""

    rules: tuple[Rule, ...]

    def is_one_to_one(self, up: Partitioning, down: Partitioning | None) -> bool:
        """Whether every downstream partition reads exactly one upstream partition by definition,
        although it may not exist.
        """

        def pairs(rule: Rule, dimension: Dimension) -> bool:
            match rule, dimension.values:
                case Same(), _:
                    return True
                case Window(decider, 0, 0), TimeGrid() as grid if down is not None:
                    own = down.dimensions[decider].values
                    return isinstance(own, TimeGrid) and grid.is_in_step_with(own)
                case _:
                    return False

        return all(pairs(rule, dimension) for rule, dimension in zip(self.rules, up.dimensions, strict=True))

    def upstream(
        self, up: Partitioning, down: Partitioning | None, key: PartitionKey | None, moment: Moment
    ) -> list[PartitionKey]:
        """The partitions that one downstream partition reads. Values that the upstream partitioning
        lacks are left out.
        """
        pairs = zip(self.rules, up.dimensions, strict=True)
        return up.product([_read(rule, dimension, down, key, moment) for rule, dimension in pairs])

    def downstream(
        self, up: Partitioning, down: Partitioning, key: PartitionKey, moment: Moment
    ) -> list[PartitionKey] | None:
        """The downstream partitions that read this one; ``None`` if all do."""
        lists: list[list[Value] | None] = [None] * len(down.dimensions)
        for rule, dimension in zip(self.rules, up.dimensions, strict=True):
            found = _readers(rule, dimension, down, key[dimension.name])
            if found is None:
                continue
            place, readers = found
            before = lists[place]
            lists[place] = readers if before is None else _both(before, readers)
        if all(values is None for values in lists):
            return None
        filled = [
            dimension.existing(moment) if values is None else values
            for values, dimension in zip(lists, down.dimensions, strict=True)
        ]
        return [key for key in down.product(filled) if down.exists(key, moment)]


def _read(
    rule: Rule, dimension: Dimension, down: Partitioning | None, key: PartitionKey | None, moment: Moment
) -> list[Value]:
    match rule:
        case All():
            return dimension.existing(moment)
        case Latest(count):
            return dimension.newest(count, moment)
    if down is None or key is None:
        return []
    decider = down.dimensions[rule.down]
    value = key[decider.name]
    match rule:
        case Same():
            return [value] if dimension.has(value, moment) else []
        case Window():
            if not isinstance(dimension.values, TimeGrid):
                return []
            return dimension.periods(dimension.values, _window(dimension.values, decider, value, rule))
        case Table(_, entries):
            _, listed = entries.get(typed(value), (value, ()))
            return [upstream for upstream in listed if dimension.has(upstream, moment)]


def _readers(rule: Rule, dimension: Dimension, down: Partitioning, value: Value) -> tuple[int, list[Value]] | None:
    """The downstream dimension that the rule depends on, and its values that may read ``value``; None if all do."""
    match rule:
        case All() | Latest():
            return None
        case Same(place):
            return place, [value]
        case Table(place, entries):
            reads = [reader for reader, listed in entries.values() if typed(value) in map(typed, listed)]
            return place, sorted(reads, key=typed)
        case Window(place):
            return place, _window_readers(dimension, down.dimensions[place], value, rule)


def _window(up: TimeGrid, decider: Dimension, value: Value, rule: Window) -> range:
    """The upstream places that a downstream period reads."""
    grid = decider.values
    place = grid.place(value) if isinstance(grid, TimeGrid) else None
    span = grid.span(place) if isinstance(grid, TimeGrid) and isinstance(place, int) else None
    if span is None:
        return range(0)
    overlap = up.overlapping(span)
    return up.clip(range(overlap.start + rule.start, overlap.stop + rule.end))


def _window_readers(dimension: Dimension, reader: Dimension, value: Value, rule: Window) -> list[Value]:
    """The downstream periods whose window contains an upstream one, found by trying the ones near it."""
    up, down = dimension.values, reader.values
    if not isinstance(up, TimeGrid) or not isinstance(down, TimeGrid):
        return []
    place = up.place(value)
    if not isinstance(place, int):
        return []
    first = up.span(place - max(rule.start, rule.end))
    last = up.span(place - min(rule.start, rule.end))
    if first is None or last is None:
        return []
    near = down.clip(down.overlapping(first._replace(end=last.end)))
    return [candidate for candidate in reader.periods(down, near) if place in _window(up, reader, candidate, rule)]


def _both(some: Iterable[Value], others: Iterable[Value]) -> list[Value]:
    kept = {typed(value) for value in others}
    return [value for value in some if typed(value) in kept]
