"""The results of checking a manifest: resolved assets, or faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from servo.model.mapping import PartitionMapping
from servo.model.partitioning import Partitioning
from servo.model.suggestions import did_you_mean
from servo.v1 import manifest_pb2

# Suggestions compare with every key, which is expensive, so only the first unknown keys get one.
_OFFERS_MAX = 16

# The index of each asset in the manifest, by key.
Names = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Link:
    """One dependency."""

    upstream: int
    # None if the dependency is not partitioned.
    mapping: PartitionMapping | None
    parameter: str
    optional: bool
    mapped: bool


@dataclass(frozen=True, slots=True)
class Checked:
    """The resolved assets of a manifest, in the manifest's order."""

    manifest: manifest_pb2.Manifest
    names: Names
    partitionings: Sequence[Partitioning | None]
    links: Sequence[Sequence[Link]]
    # For each asset the one whose task makes it, usually itself.
    makers: Sequence[int]


@dataclass(slots=True)
class Faults:
    found: list[tuple[str, str]] = field(default_factory=list)
    offers: int = 0

    def add(self, path: str, sentence: str) -> None:
        self.found.append((path, sentence))

    def offer(self, key: str, names: Names) -> str:
        """A suggestion for an unknown key."""
        self.offers += 1
        return did_you_mean(key, names) if self.offers <= _OFFERS_MAX else ""
