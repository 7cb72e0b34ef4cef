"""How an asset is divided into partitions: the product of typed dimensions.

The definition never changes, but the partitions that exist depend on the moment: periods end, sets
grow and shrink.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from servo.errors import InvalidValue

from .grid import Misfit, TimeGrid
from .limits import PARTITION_DIMENSIONS_MAX, PARTITION_VALUES_MAX
from .partition_key import MAP_DIMENSION, PartitionKey
from .partition_value import Value, ValueKind, from_text, kind_of, plain_text, write
from .text import is_name


class OutOfRange(InvalidValue):
    """The value fits the definition, but is before the start, after the end or in the future."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Everything that partitions depend on apart from their definition."""

    # Seconds since 1970.
    now: int
    # The values of dynamic sets; a set that is missing here is empty.
    sets: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fixed:
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Dynamic:
    set: str


Values = TimeGrid | Fixed | Dynamic


@dataclass(frozen=True, slots=True)
class Dimension:
    name: str
    values: Values

    def __post_init__(self) -> None:
        if not is_name(self.name) or self.name == MAP_DIMENSION:
            raise InvalidValue(
                "is not a dimension name: write lower-case letters, digits and `_`, not beginning with a digit, and "
                "not `_map`"
            )

    @property
    def kind(self) -> ValueKind:
        match self.values:
            case TimeGrid() as grid:
                return grid.kind
            case Fixed(values) if values:
                return kind_of(values[0])
            case _:
                return ValueKind.STRING

    def has(self, value: Value, moment: Moment) -> bool:
        """Whether the definition has this value, even if its period has not ended."""
        if isinstance(self.values, TimeGrid):
            return isinstance(self.values.place(value), int)
        return typed(value) in map(typed, self.existing(moment))

    def check(self, value: Value, moment: Moment) -> None:
        """Checks that the value exists now."""
        match self.values:
            case TimeGrid() as grid:
                self._check_place(grid, value, moment)
            case Fixed() if not self.has(value, moment):
                raise InvalidValue(f"`{self.name}` has no value `{write(value)}`")
            case Dynamic(name) if not self.has(value, moment):
                raise InvalidValue(
                    f"`{self.name}` has no value `{write(value)}`; add it to the dynamic partition set `{name}` first"
                )

    def existing(self, moment: Moment) -> list[Value]:
        """Every value that exists, oldest first."""
        match self.values:
            case TimeGrid() as grid:
                return self.periods(grid, grid.over(moment.now))
            case Fixed(values):
                return list(values)
            case Dynamic(name):
                return list(dict.fromkeys(moment.sets.get(name, ())))

    def newest(self, count: int, moment: Moment) -> list[Value]:
        if not isinstance(self.values, TimeGrid):
            return self.existing(moment)[-count:]
        over = self.values.over(moment.now)
        # Twice as many, because a zone may have skipped a day among them.
        return self.periods(self.values, range(max(over.stop - 2 * count, 0), over.stop))[-count:]

    def periods(self, grid: TimeGrid, places: range) -> list[Value]:
        if len(places) > PARTITION_VALUES_MAX:
            raise OutOfRange(
                f"`{self.name}` has {len(places)} periods there, more than the {PARTITION_VALUES_MAX} that one call "
                "may name; ask for fewer"
            )
        values = (grid.value(place) for place in places if grid.is_real(place))
        return [value for value in values if value is not None]

    def known(self, text: str, moment: Moment) -> Value:
        """An existing value from user input."""
        try:
            value = from_text(self.kind, text)
        except InvalidValue as fault:
            raise InvalidValue(f"the value of `{self.name}` is refused: {fault}") from None
        self.check(value, moment)
        return value

    def between(self, start: str, end: str, moment: Moment) -> list[Value]:
        """An inclusive range; an empty text leaves that side open."""
        first = self.known(start, moment) if start else None
        last = self.known(end, moment) if end else None
        values = self.existing(moment)
        begin = values.index(first) if first is not None else 0
        after = values.index(last) + 1 if last is not None else len(values)
        if start and begin >= after:
            raise InvalidValue(f"`{self.name}` goes from {start} back to {end}; swap them")
        return values[begin:after]

    def _check_place(self, grid: TimeGrid, value: Value, moment: Moment) -> None:
        shown = f"`{self.name}={write(value)}`"
        place = grid.place(value)
        if place is Misfit.NOT_A_BEGINNING:
            raise InvalidValue(f"{shown} {place.value.format(grain=grid.grain.name)}")
        if isinstance(place, Misfit):
            raise OutOfRange(f"{shown} {place.value}")
        if place >= grid.over(moment.now).stop:
            raise OutOfRange(f"{shown} is not over yet; a period exists once it has ended")


@dataclass(frozen=True, slots=True, init=False)
class Partitioning:
    """Dimensions sorted by name; at least one."""

    dimensions: tuple[Dimension, ...]

    def __init__(self, dimensions: Iterable[Dimension]) -> None:
        ordered = tuple(sorted(dimensions, key=lambda dimension: dimension.name))
        if not 1 <= len(ordered) <= PARTITION_DIMENSIONS_MAX:
            raise InvalidValue(f"has {len(ordered)} dimensions; 1 to {PARTITION_DIMENSIONS_MAX} are allowed")
        for one, other in itertools.pairwise(ordered):
            if one.name == other.name:
                raise InvalidValue(f"the dimension `{one.name}` appears twice; keep one")
        object.__setattr__(self, "dimensions", ordered)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dimension.name for dimension in self.dimensions)

    def position(self, name: str) -> int | None:
        return self.names.index(name) if name in self.names else None

    def has_shape_of(self, key: PartitionKey) -> bool:
        return self.names == key.names

    def check(self, key: PartitionKey, moment: Moment) -> None:
        """Checks that the key names an existing partition."""
        if not self.has_shape_of(key):
            raise InvalidValue(f"`{key}` does not name the dimensions {', '.join(self.names)}, each once")
        for dimension in self.dimensions:
            dimension.check(key[dimension.name], moment)

    def exists(self, key: PartitionKey, moment: Moment) -> bool:
        try:
            self.check(key, moment)
        except InvalidValue:
            return False
        return True

    def all(self, moment: Moment) -> list[PartitionKey]:
        return self.product([dimension.existing(moment) for dimension in self.dimensions])

    def latest(self, count: int, moment: Moment) -> list[PartitionKey]:
        """The newest periods, with every value of the other dimensions."""
        times = [dimension for dimension in self.dimensions if isinstance(dimension.values, TimeGrid)]
        if len(times) != 1:
            raise InvalidValue("the latest partitions need exactly one dimension of time")
        return self.product([d.newest(count, moment) if d is times[0] else d.existing(moment) for d in self.dimensions])

    def product(self, lists: Sequence[Sequence[Value]]) -> list[PartitionKey]:
        """Every combination; the last dimension changes fastest."""
        return [PartitionKey(dict(zip(self.names, values, strict=True))) for values in itertools.product(*lists)]


def typed(value: Value) -> tuple[ValueKind, str]:
    """Distinguishes 1 from True, which Python considers equal."""
    return kind_of(value), plain_text(value)
