"""Partitions and mappings as proto messages."""

from __future__ import annotations

from collections.abc import Mapping

from servo.define.dependencies import AllOf, Identity, Latest, Rule, Table, Window
from servo.define.partitions import Dimension, Dynamic, Partitions, Static
from servo.define.validation import of_kind, shown, text
from servo.errors import InvalidValue
from servo.model.partition_value import plain_text
from servo.v1 import partition_pb2 as pb

_WRITE = 'Daily("2026-01-01"), Static("eu", "us") and the like'


def definition(given: Partitions | Dimension | None) -> pb.PartitionsDefinition | None:
    if given is None:
        return None
    of_kind("partitions", given, Partitions | Dimension, _WRITE)
    dimensions = Partitions.of(given).dimensions
    return pb.PartitionsDefinition(dimensions=[_dimension(name, values) for name, values in sorted(dimensions.items())])


def mapping(rules: Mapping[str, Rule]) -> pb.PartitionMapping | None:
    if not isinstance(rules, Mapping):
        raise InvalidValue(f"mapping is {shown(rules)}; write a mapping from dimension to rule, or leave it out")
    if not rules:
        return None
    return pb.PartitionMapping(dimensions=[_rule(upstream, rule) for upstream, rule in sorted(rules.items())])


def _dimension(name: str, given: Dimension) -> pb.PartitionDimension:
    of_kind(f"the dimension `{name}`", given, Dimension, _WRITE)
    if isinstance(given, Static):
        values = [plain_text(value) for value in given.values]
        fixed = pb.StaticValues(type=f"VALUE_TYPE_{given.kind.name}", values=values)
        return pb.PartitionDimension(name=name, fixed=fixed)
    if isinstance(given, Dynamic):
        return pb.PartitionDimension(name=name, dynamic=pb.DynamicValues(set=text("set", given.set)))
    grid = pb.TimeGrid(
        grain=f"TIME_GRAIN_{given.grain.name}",
        time_zone=text("zone", given.zone),
        start=given.start_text,
        end=given.end_text,
    )
    return pb.PartitionDimension(name=name, time=grid)


def _rule(upstream: str, rule: Rule) -> pb.DimensionMapping:
    match rule:
        case Identity(downstream):
            return pb.DimensionMapping(upstream=upstream, downstream=downstream or upstream, identity=True)
        case Window(start, end, downstream):
            window = pb.TimeWindow(start_offset=start, end_offset=end)
            return pb.DimensionMapping(upstream=upstream, downstream=downstream or upstream, window=window)
        case AllOf():
            return pb.DimensionMapping(upstream=upstream, all=True)
        case Latest(count):
            return pb.DimensionMapping(upstream=upstream, latest=count)
        case Table(_, downstream):
            entries = [pb.ValueTableEntry(downstream=reader, upstream=read) for reader, read in rule.lines]
            table = pb.ValueTable(entries=entries)
            return pb.DimensionMapping(upstream=upstream, downstream=downstream or upstream, table=table)
        case _:
            raise InvalidValue(
                f"mapping[{upstream!r}] is {shown(rule)}; write Identity(…), Window(…), AllOf(), Latest(…) or Table(…)"
            )
