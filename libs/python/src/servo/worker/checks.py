"""Checks as they are passed to a child process: those of the deployment, not those of the code."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from servo.define.checks import Check, CheckFunction, Code, MaxAge, NotNull, RowCount, Schema, Sql, Unique
from servo.execute.quality import CannotCheck

# A child starts faster without protobuf.
if TYPE_CHECKING:
    from google.protobuf.duration_pb2 import Duration

    from servo.v1 import quality_pb2


def to_job(check: quality_pb2.CheckDefinition) -> dict[str, Any]:
    """The check as JSON for the child."""
    from servo.v1 import quality_pb2

    return {
        "name": check.name,
        "severity": quality_pb2.Severity.Name(check.severity or quality_pb2.SEVERITY_ERROR)[9:].lower(),
        "phase": "pre" if check.phase == quality_pb2.CHECK_PHASE_PRE else "post",
        "timeout": _seconds(check.timeout) if check.HasField("timeout") else None,
        "kind": check.WhichOneof("spec"),
        **_spec_to_job(check),
    }


def read(given: Mapping[str, Any]) -> Check:
    """Called in the child. Raises :class:`CannotCheck`."""
    spec = _read_spec(given)
    timeout = None if given["timeout"] is None else timedelta(seconds=given["timeout"])
    return Check(given["name"], spec, given["severity"], given["phase"], timeout)


def _spec_to_job(check: quality_pb2.CheckDefinition) -> dict[str, Any]:
    match check.WhichOneof("spec"):
        case "row_count":
            rows = check.row_count
            return {
                "min": rows.min if rows.HasField("min") else None,
                "max": rows.max if rows.HasField("max") else None,
                "share": rows.min_share_of_previous_ppm if rows.HasField("min_share_of_previous_ppm") else None,
            }
        case "not_null":
            return {"columns": list(check.not_null.columns)}
        case "unique":
            return {"columns": list(check.unique.columns)}
        case "freshness":
            return {"column": check.freshness.column, "max_age": _seconds(check.freshness.max_age)}
        case "schema":
            columns = [[each.name, each.type + ("?" if each.nullable else "")] for each in check.schema.columns]
            return {"columns": columns, "allow_extra": check.schema.allow_extra}
        case "sql":
            return {"query": check.sql.query}
        case "code":
            return {"module": check.code.module, "function": check.code.function}
    return {}


def _read_spec(given: Mapping[str, Any]) -> RowCount | NotNull | Unique | MaxAge | Schema | Sql | Code:
    match given["kind"]:
        case "row_count":
            return RowCount(given["min"], given["max"], given["share"])
        case "not_null":
            return NotNull(tuple(given["columns"]))
        case "unique":
            return Unique(tuple(given["columns"]))
        case "freshness":
            return MaxAge(given["column"], timedelta(seconds=given["max_age"]))
        case "schema":
            return Schema(tuple((name, kind) for name, kind in given["columns"]), given["allow_extra"])
        case "sql":
            return Sql(given["query"])
        case "code":
            return Code(_function(given["name"], given["module"], given["function"]))
    raise CannotCheck(
        f"the check `{given['name']}` is of a kind that this worker does not know; install a newer servo-orchestrator "
        "where the worker runs"
    )


def _function(name: str, module: str, function: str) -> Callable[..., Any]:
    try:
        found = getattr(importlib.import_module(module), function, None)
    except ImportError as error:
        raise CannotCheck(f"the check `{name}` cannot be imported: {error}; build and deploy the code again") from error
    if isinstance(found, CheckFunction):
        return found.function
    if not callable(found):
        raise CannotCheck(
            f"the check `{name}` is `{module}.{function}`, which is not a function in this version of the code; build "
            "and deploy it again"
        )
    plain: Callable[..., Any] = found
    return plain


def _seconds(length: Duration) -> float:
    return length.seconds + length.nanos / 1e9
