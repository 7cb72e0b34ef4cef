"""Loads the inputs of a function from the versions that its task was given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from servo.define.dependencies import In
from servo.execute import tables
from servo.execute.errors import InputMissing
from servo.execute.quality import Read
from servo.model.partition_key import MAP_DIMENSION, PartitionKey, parse_dimensions

from . import commit

Load = Callable[[PartitionKey | None], Any]


@dataclass(frozen=True, slots=True)
class Version:
    # Empty for an unpartitioned asset.
    partition: str
    # Empty if the partition has no version.
    materialization_id: str
    # Empty if the attempt wrote nothing.
    uri: str


class Shape(IntEnum):
    """How much of an asset is read, with the numbers of the envelope's enum."""

    UNSPECIFIED = 0
    WHOLE = 1
    ONE = 2
    SEVERAL = 3


@dataclass(frozen=True, slots=True)
class ResolvedInput:
    """An input as the envelope describes it."""

    asset_key: str
    parameter: str
    versions: Sequence[Version]
    # Made once per item: a version of a whole partition then means that there were no items.
    mapped: bool = False
    shape: Shape = Shape.UNSPECIFIED


@dataclass(frozen=True, slots=True)
class _Piece:
    """The part of an input that becomes one value."""

    partition: str
    # Several for a mapped asset: the versions of its items, in order.
    versions: Sequence[Version]
    mapped: bool

    @property
    def there(self) -> bool:
        return any(each.materialization_id for each in self.versions)


class Reader:
    """Reads inputs and counts the bytes."""

    def __init__(self) -> None:
        self.read_bytes = 0

    def read(self, resolved: ResolvedInput, given: In, wanted: tables.Kind | None, load: Load | None = None) -> Read:
        """One value where partitions are paired one to one, else a mapping from partition key to
        value. ``load`` reads sources, which have no version here.
        """
        if resolved.shape is Shape.ONE and not resolved.versions:
            refuse_missing_partition(resolved.asset_key, resolved.parameter, optional=given.optional)
            return Read(None)
        is_partitioned = resolved.shape in (Shape.ONE, Shape.SEVERAL)
        pieces = _pieces(resolved.versions if resolved.versions or is_partitioned else [Version("", "", "")])
        if resolved.shape is not Shape.SEVERAL and len(pieces) == 1:
            return Read(self._value(resolved, pieces[0], given, wanted, load))
        found = {
            PartitionKey.parse(piece.partition): self._value(resolved, piece, given, wanted, load)
            for piece in pieces
            if piece.there or load or not given.optional
        }
        return Read(found, several=True)

    def _value(
        self, resolved: ResolvedInput, piece: _Piece, given: In, wanted: tables.Kind | None, load: Load | None
    ) -> Any:
        """For a mapped asset, the list of its items' values."""
        if resolved.mapped and not piece.mapped and piece.there:
            return []
        if load and not piece.there:
            return tables.as_kind(load(PartitionKey.parse(piece.partition) if piece.partition else None), wanted)
        if not piece.mapped:
            return self._one(resolved, piece.versions[0], given, wanted)
        # All items have succeeded, otherwise the reader would not run, so an item without a version
        # made nothing.
        made = (version if version.materialization_id else None for version in piece.versions)
        return [each and self._one(resolved, each, given, wanted) for each in made]

    def _one(self, resolved: ResolvedInput, version: Version, given: In, wanted: tables.Kind | None) -> Any:
        if not version.materialization_id:
            if given.optional:
                return None
            of = f"the partition {version.partition} of " if version.partition else ""
            raise InputMissing(
                f"{of}`{resolved.asset_key}` has no version for the parameter `{resolved.parameter}`; materialize it "
                "first, or make the input optional"
            )
        if not version.uri:
            return None
        value, size = commit.read(version.uri, wanted)
        self.read_bytes += size
        return value


def is_item(version: Version) -> bool:
    """Whether it is the version of one item of a mapped asset."""
    return MAP_DIMENSION in parse_dimensions(version.partition) if version.partition else False


def _pieces(versions: Sequence[Version]) -> list[_Piece]:
    found: dict[str, dict[int, Version]] = {}
    whole: list[_Piece] = []
    for version in versions:
        if not is_item(version):
            whole.append(_Piece(version.partition, [version], mapped=False))
            continue
        dimensions = dict(parse_dimensions(version.partition))
        index = dimensions.pop(MAP_DIMENSION)
        assert isinstance(index, int)
        found.setdefault(str(PartitionKey(dimensions)) if dimensions else "", {})[index] = version
    items = [_Piece(key, [each for _, each in sorted(made.items())], mapped=True) for key, made in found.items()]
    return [*whole, *items]


def refuse_missing_partition(asset_key: str, parameter: str, *, optional: bool) -> None:
    """Raises if the asset has no partition for the reader's own; only an optional input may be missing."""
    if not optional:
        raise InputMissing(
            f"`{asset_key}` has no partition that matches this one for the parameter `{parameter}`; make its "
            "partitions cover it, or make the input optional"
        )
