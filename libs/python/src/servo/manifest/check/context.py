"""What checking a manifest gives: meaning, or faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from servo.model.mapping import PartitionMapping
from servo.model.partitioning import Partitioning
from servo.model.suggestions import did_you_mean
from servo.v1 import manifest_pb2

# Comparing with every key is dear, so only the first unknown ones are helped.
_OFFERS_MAX = 16

# Where each asset stands in the manifest, by its key.
Names = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Link:
    """One dependency."""

    upstream: int
    # None when the upstream is one undivided piece.
    mapping: PartitionMapping | None
    parameter: str
    optional: bool
    mapped: bool


@dataclass(frozen=True, slots=True)
class Checked:
    """What a manifest's assets mean, in the manifest's order."""

    manifest: manifest_pb2.Manifest
    names: Names
    partitionings: Sequence[Partitioning | None]
    links: Sequence[Sequence[Link]]
    # The asset whose task makes each one: mostly itself.
    makers: Sequence[int]


@dataclass(slots=True)
class Faults:
    found: list[tuple[str, str]] = field(default_factory=list)
    offers: int = 0

    def add(self, path: str, sentence: str) -> None:
        self.found.append((path, sentence))

    def offer(self, key: str, names: Names) -> str:
        """What an unknown key may have meant."""
        self.offers += 1
        return did_you_mean(key, names) if self.offers <= _OFFERS_MAX else ""
