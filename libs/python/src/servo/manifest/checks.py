"""Checks as proto messages."""

from __future__ import annotations

from servo.define.checks import Check, Code, MaxAge, NotNull, RowCount, Schema, Sql, Unique
from servo.v1 import quality_pb2 as pb

from .entry_points import EntryPoints
from .values import duration


def definition(check: Check, entry_points: EntryPoints) -> pb.CheckDefinition:
    message = pb.CheckDefinition(
        name=check.name,
        description=check.description,
        severity=f"SEVERITY_{check.severity.upper()}" if check.severity else None,
        phase=f"CHECK_PHASE_{check.phase.upper()}" if check.phase else None,
        timeout=duration(check.timeout, "timeout"),
    )
    match check.spec:
        case RowCount(at_least, at_most, share):
            message.row_count.CopyFrom(pb.RowCountCheck(min=at_least, max=at_most, min_share_of_previous_ppm=share))
        case NotNull(columns):
            message.not_null.CopyFrom(pb.NotNullCheck(columns=columns))
        case Unique(columns):
            message.unique.CopyFrom(pb.UniqueCheck(columns=columns))
        case MaxAge(column, max_age):
            message.freshness.CopyFrom(pb.FreshnessCheck(column=column, max_age=duration(max_age, "max_age")))
        case Schema(columns, allow_extra):
            message.schema.CopyFrom(
                pb.SchemaCheck(columns=[_column(*column) for column in columns], allow_extra=allow_extra)
            )
        case Sql(query):
            message.sql.CopyFrom(pb.SqlCheck(query=query))
        case Code(function):
            module, name = entry_points.of_function(function)
            message.code.CopyFrom(pb.CodeCheck(module=module, function=name))
    return message


def _column(name: str, arrow_type: str) -> pb.ColumnSpec:
    return pb.ColumnSpec(name=name, type=arrow_type.removesuffix("?"), nullable=arrow_type.endswith("?"))
