"""Runs as schedules and sensors describe them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from servo.model.partition_key import PartitionKey

from .asset import Asset, Output, as_input
from .validation import UINT32, listed, mapping, of_kind, whole, words


@dataclass(frozen=True, slots=True)
class Keys:
    """Individual partitions."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """Single values, or an inclusive range."""

    values: Sequence[str] = ()
    start: str = ""
    end: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", words("values", self.values))


@dataclass(frozen=True, slots=True)
class Slices:
    """The product of slices; a dimension without a slice takes all its values."""

    slices: Mapping[str, Slice]

    def __post_init__(self) -> None:
        for name, each in mapping("slices", self.slices).items():
            of_kind(f"slices[{name!r}]", each, Slice, 'Slice(values=["2026-01-31"]) or Slice(start=…, end=…)')


@dataclass(frozen=True, slots=True)
class AllPartitions:
    """Every partition that exists when the plan is made."""


@dataclass(frozen=True, slots=True)
class LatestPartitions:
    """The newest ``count`` periods that exist when the plan is made."""

    count: int = 1

    def __post_init__(self) -> None:
        whole("count", self.count, UINT32)


PartitionChoice = Keys | Slices | AllPartitions | LatestPartitions


@dataclass(frozen=True, slots=True, init=False)
class Run:
    """``Run("+marts/revenue", partitions=LatestPartitions())``"""

    selection: tuple[str, ...]
    partitions: PartitionChoice | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    priority: int = 0
    skip_up_to_date: bool = False

    def __init__(
        self,
        *selection: str | Asset[..., Any] | Output,
        partitions: PartitionChoice | PartitionKey | str | Sequence[PartitionKey | str] | None = None,
        labels: Mapping[str, str] | None = None,
        config: Mapping[str, Any] | None = None,
        priority: int = 0,
        skip_up_to_date: bool = False,
    ) -> None:
        expressions = tuple(as_input(each).key for each in selection)
        object.__setattr__(self, "selection", expressions)
        object.__setattr__(self, "partitions", choice(partitions))
        object.__setattr__(self, "labels", labels or {})
        object.__setattr__(self, "config", config or {})
        object.__setattr__(self, "priority", priority)
        object.__setattr__(self, "skip_up_to_date", skip_up_to_date)


def choice(
    given: PartitionChoice | PartitionKey | str | Sequence[PartitionKey | str] | None,
) -> PartitionChoice | None:
    """Accepts one key or several as a shorthand."""
    if given is None or isinstance(given, PartitionChoice):
        return given
    keys = [given] if isinstance(given, PartitionKey | str) else given
    return Keys(tuple(map(str, listed("partitions", keys, (PartitionKey, str), "partition keys"))))
