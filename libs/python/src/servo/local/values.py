"""The values that a run made or was given.

Readers get copies through the same formats as in storage, so that a value which a worker could not
store fails here too, and no reader sees another's modifications.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from servo.data import formats
from servo.data.inputs import refuse_missing_partition
from servo.data.memory import Memory
from servo.define.io import Io
from servo.execute import tables
from servo.execute.errors import InputMissing
from servo.model.partition_key import PartitionKey

from .plan import Input

# A value for every partition, or a function from partition to value.
Given = Any
Load = Callable[[PartitionKey | None], Any]


@dataclass(frozen=True, slots=True)
class Stored:
    """A value in memory and in its stored form."""

    value: Any
    folder: Memory
    # None if there is nothing to store.
    facts: formats.Stored | None

    @classmethod
    def of(cls, value: Any, io: Io) -> Stored:
        folder = Memory()
        return cls(value, folder, None if value is None else formats.store(folder, value, io))

    def read(self, wanted: tables.Kind | None) -> Any:
        return None if self.facts is None else formats.load(self.folder, asdict(self.facts), wanted)


@dataclass(slots=True)
class Values:
    given: Mapping[str, Given]
    # Loaders of sources, by asset key.
    loads: Mapping[str, Load] = field(default_factory=dict)
    # The value of a mapped asset is a list, with None where an item made nothing.
    _made: dict[tuple[str, PartitionKey | None], Stored | list[Stored | None]] = field(default_factory=dict)

    def keep(self, key: str, partition: PartitionKey | None, stored: Stored, item: int | None) -> None:
        if item is None:
            self._made[key, partition] = stored
        else:
            made = self._made[key, partition]
            assert isinstance(made, list)
            made[item] = stored

    def reserve_items(self, key: str, partition: PartitionKey | None, items: int) -> None:
        """Creates the list for the items' values, also for zero items."""
        self._made[key, partition] = [None] * items

    def made(self) -> dict[tuple[str, PartitionKey | None], Any]:
        """The values as user code returned them."""
        return {
            key: [each and each.value for each in stored] if isinstance(stored, list) else stored.value
            for key, stored in self._made.items()
        }

    def read(self, wanted: Input, kind: tables.Kind | None) -> Any:
        """One value, or one per partition if the mapping can give several."""
        if wanted.single and wanted.partitions == ():
            refuse_missing_partition(wanted.asset_key, wanted.parameter, optional=wanted.optional)
            return None
        if wanted.single:
            (partition,) = wanted.partitions or (None,)
            return self._one(wanted, partition, kind)
        found = {partition: self._one(wanted, partition, kind) for partition in wanted.partitions or ()}
        return {partition: value for partition, value in found.items() if value is not None or not wanted.optional}

    def _one(self, wanted: Input, partition: PartitionKey | None, kind: tables.Kind | None) -> Any:
        key = wanted.asset_key
        made = self._made.get((key, partition))
        if isinstance(made, list):
            return [each and each.read(kind) for each in made]
        if made is not None:
            return made.read(kind)
        if key in self.given:
            return tables.as_kind(_given(self.given[key], partition), kind)
        if key in self.loads:
            return tables.as_kind(self.loads[key](partition), kind)
        if wanted.optional:
            return None
        which = f"the partition {partition} of `{key}`" if partition else f"`{key}`"
        raise InputMissing(
            f"{which} is not there for the parameter `{wanted.parameter}`; materialize it in the same run, or give a "
            f"value: inputs={{{key!r}: …}}"
        )


def _given(given: Given, partition: PartitionKey | None) -> Any:
    if callable(given):
        return given(partition)
    try:
        return copy.deepcopy(given)
    # Connections, locks and the like cannot be copied.
    except Exception:
        return given
