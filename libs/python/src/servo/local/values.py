"""Values in memory: what a run made, and what it was given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from servo.execute.errors import InputMissing
from servo.model.partition_key import PartitionKey

from .plan import Input

# A value for every partition, or a function from partition to value.
Given = Any


@dataclass(slots=True)
class Values:
    given: Mapping[str, Given]
    made: dict[tuple[str, PartitionKey | None], Any] = field(default_factory=dict)

    def read(self, wanted: Input) -> Any:
        """One value, or one per partition when the definitions say that there may be several."""
        if wanted.single:
            (partition,) = wanted.partitions if wanted.partitions else (None,)
            return self._one(wanted, partition)
        found = {partition: self._one(wanted, partition) for partition in wanted.partitions or ()}
        return {partition: value for partition, value in found.items() if value is not None or not wanted.optional}

    def _one(self, wanted: Input, partition: PartitionKey | None) -> Any:
        key = wanted.asset_key
        if (key, partition) in self.made:
            return self.made[key, partition]
        if key in self.given:
            given = self.given[key]
            return given(partition) if callable(given) else given
        if wanted.optional:
            return None
        which = f"the partition {partition} of `{key}`" if partition else f"`{key}`"
        raise InputMissing(
            f"{which} is not there for the parameter `{wanted.parameter}`; materialize it in the same run, or give a "
            f"value: inputs={{{key!r}: …}}"
        )
