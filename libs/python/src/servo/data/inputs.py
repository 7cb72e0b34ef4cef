"""What a function gets for the versions that its task was given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from servo.define.dependencies import Identity, In, Rule, Window
from servo.execute import tables
from servo.execute.errors import InputMissing
from servo.execute.quality import Read
from servo.model.partition_key import MAP_DIMENSION, PartitionKey, parse_dimensions

from . import commit

Load = Callable[[PartitionKey | None], Any]


@dataclass(frozen=True, slots=True)
class Version:
    # Empty for an asset in one piece.
    partition: str
    # Empty when there is none.
    materialization_id: str
    # Empty when its attempt wrote nothing.
    uri: str


@dataclass(frozen=True, slots=True)
class Resolved:
    """An input as the envelope names it."""

    asset_key: str
    parameter: str
    versions: Sequence[Version]
    # Made once per item: a version of a whole partition then stands for no items.
    mapped: bool = False


@dataclass(frozen=True, slots=True)
class _Piece:
    """What of an input has one value."""

    partition: str
    # Several when they are those of the items of a mapped asset, in their order.
    versions: Sequence[Version]
    mapped: bool

    @property
    def there(self) -> bool:
        return any(each.materialization_id for each in self.versions)


class Reader:
    """Counts what it reads."""

    def __init__(self, own: PartitionKey | None) -> None:
        self._own = own
        self.read_bytes = 0

    def read(self, resolved: Resolved, given: In, wanted: tables.Kind | None, load: Load | None = None) -> Read:
        """One value where partitions are paired one to one, else a mapping from partition key to value. ``load`` gives
        what has no version here because it is made elsewhere."""
        pieces = _pieces(resolved.versions or [Version("", "", "")])
        if is_single(self._own, given.mapping, [Version(piece.partition, "", "") for piece in pieces]):
            return Read(self._value(resolved, pieces[0], given, wanted, load))
        found = {
            PartitionKey.parse(piece.partition): self._value(resolved, piece, given, wanted, load)
            for piece in pieces
            if piece.there or load or not given.optional
        }
        return Read(found, several=True)

    def _value(
        self, resolved: Resolved, piece: _Piece, given: In, wanted: tables.Kind | None, load: Load | None
    ) -> Any:
        """Of what is made once per item, the list of what the items made."""
        if resolved.mapped and not piece.mapped and piece.there:
            return []
        if load and not piece.there:
            return tables.as_kind(load(PartitionKey.parse(piece.partition) if piece.partition else None), wanted)
        if not piece.mapped:
            return self._one(resolved, piece.versions[0], given, wanted)
        # All items were done, or their reader would not run: one without a version made nothing.
        made = (version if version.materialization_id else None for version in piece.versions)
        return [each and self._one(resolved, each, given, wanted) for each in made]

    def _one(self, resolved: Resolved, version: Version, given: In, wanted: tables.Kind | None) -> Any:
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
    """Whether it is what one item of a mapped asset made."""
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


def is_single(own: PartitionKey | None, rules: Mapping[str, Rule], versions: Sequence[Version]) -> bool:
    """Whether the one version named is the reader's own partition, seen from upstream."""
    if len(versions) != 1:
        return False
    if not versions[0].partition:
        return True
    values = dict(own.dimensions) if own else {}
    for name, value in PartitionKey.parse(versions[0].partition).dimensions:
        rule = rules.get(name)
        match rule:
            case None:
                same = name
            case Identity(downstream) | Window(0, 0, downstream):
                same = downstream or name
            case _:
                return False
        if values.get(same) != value:
            return False
    return True
