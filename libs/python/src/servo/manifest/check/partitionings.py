"""Partitionings: from the manifest's messages to :class:`~servo.model.partitioning.Partitioning`."""

from __future__ import annotations

from servo.errors import InvalidValue
from servo.model.grain import Grain
from servo.model.grid import NoGrid, TimeGrid
from servo.model.limits import STATIC_VALUES_MAX
from servo.model.partition_key import PartitionKey
from servo.model.partition_value import Value, ValueKind, from_text
from servo.model.partitioning import Dimension, Dynamic, Fixed, Partitioning, Values, typed
from servo.v1 import manifest_pb2, partition_pb2

from . import values
from .context import Faults


def check(manifest: manifest_pb2.Manifest, faults: Faults) -> list[Partitioning | None]:
    """One per asset; ``None`` for unpartitioned and for invalid ones."""
    return [
        _partitioning(faults, f"assets[{index}].partitions", asset.partitions) if asset.partitions.dimensions else None
        for index, asset in enumerate(manifest.assets)
    ]


def _partitioning(faults: Faults, path: str, given: partition_pb2.PartitionsDefinition) -> Partitioning | None:
    places = enumerate(given.dimensions)
    read = [_dimension(faults, f"{path}.dimensions[{index}]", dimension) for index, dimension in places]
    dimensions = [dimension for dimension in read if dimension is not None]
    if len(dimensions) < len(read):
        return None
    try:
        return Partitioning(dimensions)
    except InvalidValue as fault:
        faults.add(path, str(fault))
        return None


def _dimension(faults: Faults, path: str, given: partition_pb2.PartitionDimension) -> Dimension | None:
    read = _values(faults, path, given)
    if read is None:
        return None
    try:
        return Dimension(given.name, read)
    except InvalidValue as fault:
        faults.add(f"{path}.name", str(fault))
        return None


def _values(faults: Faults, path: str, given: partition_pb2.PartitionDimension) -> Values | None:
    match given.WhichOneof("values"):
        case "time":
            return _time(faults, f"{path}.time", given.time)
        case "fixed":
            return _fixed(faults, f"{path}.fixed", given.fixed)
        case "dynamic":
            values.name(faults, f"{path}.dynamic.set", given.dynamic.set)
            return Dynamic(given.dynamic.set)
        case _:
            faults.add(path, "has no values; say time, fixed or dynamic")
            return None


def _time(faults: Faults, path: str, given: partition_pb2.TimeGrid) -> TimeGrid | None:
    if int(given.grain) not in list(Grain):
        faults.add(f"{path}.grain", "is missing; write HOUR, DAY, WEEK or MONTH")
        return None
    try:
        return TimeGrid.read(Grain(given.grain), given.time_zone, given.start, given.end)
    except NoGrid as fault:
        faults.add(f"{path}.{fault.field}", fault.sentence)
        return None


def _fixed(faults: Faults, path: str, given: partition_pb2.StaticValues) -> Fixed | None:
    count = len(given.values)
    if not 1 <= count <= STATIC_VALUES_MAX:
        faults.add(f"{path}.values", f"has {count} values; 1 to {STATIC_VALUES_MAX} are allowed")
        return None
    if given.type not in {0, *ValueKind}:
        faults.add(f"{path}.type", "is not in the list of value types")
        return None
    kind = ValueKind(given.type or ValueKind.STRING)
    read: dict[tuple[ValueKind, str], Value] = {}
    for index, text in enumerate(given.values):
        try:
            value = from_text(kind, text)
            # Constructing a key validates the value.
            PartitionKey(d=value)
        except InvalidValue as fault:
            faults.add(f"{path}.values[{index}]", str(fault))
        else:
            read[typed(value)] = value
    if len(read) < count:
        faults.add(f"{path}.values", "holds values that are wrong or repeated; keep each once")
    return Fixed(tuple(read.values()))
