"""What a function gets for the versions that its task was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from servo.define.dependencies import Identity, In, Rule, Window
from servo.execute import tables
from servo.execute.errors import InputMissing
from servo.execute.quality import Read
from servo.model.partition_key import PartitionKey

from . import commit


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


class Reader:
    """Counts what it reads."""

    def __init__(self, own: PartitionKey | None) -> None:
        self._own = own
        self.read_bytes = 0

    def read(self, resolved: Resolved, given: In, wanted: tables.Kind | None) -> Read:
        """One value where partitions are paired one to one, else a mapping from partition key to value."""
        versions = resolved.versions or [Version("", "", "")]
        if is_single(self._own, given.mapping, versions):
            return Read(self._one(resolved, versions[0], given, wanted))
        found = {
            PartitionKey.parse(each.partition): self._one(resolved, each, given, wanted)
            for each in versions
            if each.materialization_id or not given.optional
        }
        return Read(found, several=True)

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
