"""The identity of a task: ``namespace/name[partition]:operation``.

Contains nothing generated, so that planning twice gives the same plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from servo.errors import InvalidValue

from .asset_key import AssetKey
from .hashes import head
from .partition_key import MAP_DIMENSION, PartitionKey, parse_dimensions, write_dimensions
from .partition_value import Value
from .text import excerpt

_MAP_INDEX_MAX = 2**32 - 1


class Operation(StrEnum):
    MATERIALIZE = "materialize"
    CHECK = "check"
    EVALUATE = "evaluate"


@dataclass(frozen=True, slots=True)
class TaskKey:
    """``str()`` is the canonical text."""

    asset: AssetKey
    partition: PartitionKey | None = None
    operation: Operation = Operation.MATERIALIZE
    # The index of the item, for a mapped task.
    map_index: int | None = None

    def child(self, index: int) -> TaskKey:
        """The key of the mapped task for one item, if this is the key of its mapped parent."""
        return replace(self, map_index=index)

    @property
    def id(self) -> str:
        """Short enough for a URL."""
        return f"task_{head(str(self))}"

    @classmethod
    def parse(cls, text: str) -> TaskKey:
        subject, colon, operation = text.rpartition(":")
        asset, bracket, rest = subject.partition("[")
        if not colon or (bracket and not rest.endswith("]")):
            raise InvalidValue(f"`{excerpt(text)}` is not a task key: write namespace/name[partition]:operation")
        partition, map_index = _parse_brackets(rest[:-1]) if bracket else (None, None)
        return cls(AssetKey.parse(asset), partition, _parse_operation(operation), map_index)

    def __str__(self) -> str:
        dimensions: dict[str, Value] = dict(self.partition.dimensions) if self.partition else {}
        if self.map_index is not None:
            dimensions[MAP_DIMENSION] = self.map_index
        inner = write_dimensions(tuple(sorted(dimensions.items())))
        return f"{self.asset}{f'[{inner}]' if inner else ''}:{self.operation}"


def _parse_brackets(text: str) -> tuple[PartitionKey | None, int | None]:
    dimensions = parse_dimensions(text)
    index = dimensions.pop(MAP_DIMENSION, None)
    whole = isinstance(index, int) and not isinstance(index, bool) and 0 <= index <= _MAP_INDEX_MAX
    if index is not None and not whole:
        raise InvalidValue(
            f"the dimension `_map` numbers the children of a mapped parent: write _map=i:0 to _map=i:{_MAP_INDEX_MAX}"
        )
    return PartitionKey(dimensions) if dimensions else None, index if isinstance(index, int) else None


def _parse_operation(text: str) -> Operation:
    if text == "backfill":
        raise InvalidValue("the operation `backfill` is reserved; a backfill runs `materialize`")
    try:
        return Operation(text)
    except ValueError:
        raise InvalidValue(
            f"`{excerpt(text)}` is not an operation; the operations are materialize, check and evaluate"
        ) from None
