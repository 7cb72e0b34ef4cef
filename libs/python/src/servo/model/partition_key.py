"""The identity of a partition: typed dimensions, written ``name=tag:value`` and joined by ``,``.

A partition has one text. Parsing accepts only that text, so that keys can be compared byte by byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from servo.errors import InvalidValue

from . import partition_value
from .limits import NAME_BYTES_MAX, PARTITION_DIMENSIONS_MAX, PARTITION_KEY_BYTES_MAX
from .partition_value import Value
from .text import excerpt, is_name

# Numbers the children of a mapped parent. Part of task keys, never of partition keys.
MAP_DIMENSION = "_map"


@dataclass(frozen=True, slots=True, init=False)
class PartitionKey:
    """``PartitionKey(day=date(2026, 1, 31), region="eu")``; ``str()`` is the canonical text."""

    dimensions: tuple[tuple[str, Value], ...]
    text: str

    def __init__(self, given: Mapping[str, Value] | None = None, /, **named: Value) -> None:
        dimensions = tuple(sorted({**(given or {}), **named}.items()))
        for name, value in dimensions:
            check_name(name)
            _shown(name, value)
        if any(name == MAP_DIMENSION for name, _ in dimensions):
            raise InvalidValue("the dimension name `_map` is reserved for mapped tasks; choose another")
        text = write_dimensions(dimensions)
        if not dimensions:
            raise InvalidValue("a partition key has at least one dimension, written name=tag:value")
        if len(dimensions) > PARTITION_DIMENSIONS_MAX or len(text) > PARTITION_KEY_BYTES_MAX:
            raise InvalidValue(
                f"a partition key has at most {PARTITION_DIMENSIONS_MAX} dimensions and "
                f"{PARTITION_KEY_BYTES_MAX} bytes; use shorter values"
            )
        object.__setattr__(self, "dimensions", dimensions)
        object.__setattr__(self, "text", text)

    @classmethod
    def parse(cls, text: str) -> PartitionKey:
        return cls(parse_dimensions(text))

    def __getitem__(self, dimension: str) -> Value:
        return dict(self.dimensions)[dimension]

    def get(self, dimension: str) -> Value | None:
        return dict(self.dimensions).get(dimension)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.dimensions)

    def __str__(self) -> str:
        return self.text


def write_dimensions(dimensions: tuple[tuple[str, Value], ...]) -> str:
    return ",".join(f"{name}={partition_value.write(value)}" for name, value in dimensions)


def parse_dimensions(text: str) -> dict[str, Value]:
    """Accepts sorted, unique dimensions in canonical spelling only."""
    if not text:
        raise InvalidValue("a partition key has at least one dimension, written name=tag:value")
    dimensions: dict[str, Value] = {}
    last = ""
    for part in text.split(","):
        name, value = _parse_dimension(part)
        if name == last:
            raise InvalidValue(f"the dimension `{name}` appears twice; keep one")
        if name < last:
            raise InvalidValue(f"dimensions are sorted by name: write `{name}` before `{last}`")
        dimensions[name] = value
        last = name
    return dimensions


def check_name(name: str) -> None:
    if not is_name(name):
        raise InvalidValue(
            f"the dimension name `{excerpt(name)}` is refused: write 1 to {NAME_BYTES_MAX} lower-case letters, "
            "digits and `_`, not beginning with a digit"
        )


def _parse_dimension(text: str) -> tuple[str, Value]:
    name, equals, rest = text.partition("=")
    tag, colon, value = rest.partition(":")
    if not equals or not colon:
        raise InvalidValue(f"`{excerpt(text)}` is not a dimension: write name=tag:value")
    check_name(name)
    try:
        return name, partition_value.read(tag, value)
    except InvalidValue as fault:
        raise InvalidValue(f"the value of dimension `{name}` is refused: {fault}") from None


def _shown(name: str, value: Value) -> str:
    try:
        return partition_value.write(value)
    except InvalidValue as fault:
        raise InvalidValue(f"the value of dimension `{name}` is refused: {fault}") from None
