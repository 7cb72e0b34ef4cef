"""The evaluation of each kind of check on one value."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from servo.define.checks import Check, Code, MaxAge, NotNull, RowCount, Schema, Sql, Unique
from servo.define.results import CheckOutcome
from servo.errors import InvalidValue

from . import tables
from .duckdb_rows import fetch_rows

OUTPUT_VIEW = "output"
_BAD_ROWS_COUNTED_MAX = 1_000
# Types that differ in layout only.
_SAME_TYPES = {
    "large_string": "string",
    "string_view": "string",
    "large_binary": "binary",
    "binary_view": "binary",
    "double": "float64",
    "float": "float32",
    "halffloat": "float16",
}


def outcome(check: Check, value: Any, now: datetime, previous_rows: int | None = None) -> CheckOutcome:
    """``previous_rows`` is the row count of the previous version, None without one."""
    match check.spec:
        case Code(function):
            return user_outcome(function(value))
        case RowCount(at_least, at_most, share):
            return _row_count(tables.row_count(value), at_least, at_most, share, previous_rows)
        case NotNull(columns):
            empty = sum(tables.null_count(value, column) for column in columns)
            message = f"{empty} {'value is' if empty == 1 else 'values are'} empty" if empty else ""
            return CheckOutcome(empty == 0, message, str(empty), "0")
        case Unique(columns):
            again = tables.repeated_rows(value, columns)
            message = f"{again} {'row repeats' if again == 1 else 'rows repeat'} another" if again else ""
            return CheckOutcome(again == 0, message, str(again), "0")
        case MaxAge(column, max_age):
            return _max_age(tables.newest_of(value, column), max_age, now)
        case Schema():
            return _schema(tables.arrow(value), check.spec)
        case Sql(query):
            return no_rows(query, {OUTPUT_VIEW: tables.arrow(value)})


def user_outcome(found: Any) -> CheckOutcome:
    """The result of a user function with every field converted to its declared type, so that
    encoding it later cannot fail.
    """
    if isinstance(found, CheckOutcome):
        return _with_texts(found)
    # Frames return numpy.bool_, which is not a bool but works like one.
    if found is None or isinstance(found, str) or not hasattr(found, "__bool__"):
        raise InvalidValue(f"it returned {found!r}; return a bool or a CheckOutcome")
    return CheckOutcome(bool(found))


def _with_texts(outcome_given: CheckOutcome) -> CheckOutcome:
    if not isinstance(outcome_given.metadata, Mapping):
        kind = type(outcome_given.metadata).__name__
        raise InvalidValue(f"its metadata is a {kind}; give a mapping from names to texts, or leave it out")
    metadata = {str(name): str(value) for name, value in outcome_given.metadata.items()}
    return CheckOutcome(
        bool(outcome_given.passed),
        str(outcome_given.message),
        str(outcome_given.actual),
        str(outcome_given.expected),
        metadata,
    )


def no_rows(query: str, views: Mapping[str, Any]) -> CheckOutcome:
    """Every row of the query's result is a failure. ``views`` are Arrow tables."""
    import duckdb

    with duckdb.connect(":memory:") as database:
        # Names refer to the views only, never to Python variables.
        database.execute("SET python_enable_replacements = false")
        for name, table in views.items():
            database.register(name, table)
        found = database.sql(query)
        if found is None:
            raise InvalidValue("its SQL has no result; write a SELECT that returns the wrong rows")
        _, rows = fetch_rows(found.limit(_BAD_ROWS_COUNTED_MAX + 1))
    count = f"more than {_BAD_ROWS_COUNTED_MAX}" if len(rows) > _BAD_ROWS_COUNTED_MAX else str(len(rows))
    message = f"{count} {'row' if len(rows) == 1 else 'rows'}, the first is {rows[0]}" if rows else ""
    return CheckOutcome(not rows, message, count, "0")


def _row_count(
    count: int, at_least: int | None, at_most: int | None, share: int | None, previous: int | None
) -> CheckOutcome:
    wanted = _limits(at_least, at_most)
    if (at_least is not None and count < at_least) or (at_most is not None and count > at_most):
        return CheckOutcome(False, f"has {count} {'row' if count == 1 else 'rows'}", str(count), wanted)
    if share is None:
        return CheckOutcome(True, "", str(count), wanted)
    if previous is None:
        return CheckOutcome(True, "there is no previous version to compare with", str(count), wanted)
    # The share in millionths, rounded up.
    needed = -(-previous * share // 1_000_000)
    message = "" if count >= needed else f"has {count} rows, the version before {previous}"
    return CheckOutcome(count >= needed, message, str(count), f"at least {needed}")


def _limits(at_least: int | None, at_most: int | None) -> str:
    if at_least is None:
        return "" if at_most is None else f"at most {at_most}"
    return f"at least {at_least}" if at_most is None else f"{at_least} to {at_most}"


def _max_age(cells: list[Any], max_age: timedelta, now: datetime) -> CheckOutcome:
    times = [_instant(cell) for cell in cells if cell is not None]
    if not times:
        return CheckOutcome(False, "has no times", "", str(max_age))
    age = now - max(times)
    return CheckOutcome(age <= max_age, "" if age <= max_age else "is too old", str(age), str(max_age))


def _instant(cell: Any) -> datetime:
    """Times without a zone are UTC; dates are their first moment."""
    if isinstance(cell, str):
        cell = datetime.fromisoformat(cell)
    if not isinstance(cell, datetime):
        if not isinstance(cell, date):
            raise InvalidValue(f"{cell!r} is not a time")
        cell = datetime(cell.year, cell.month, cell.day)
    instant: datetime = cell if cell.tzinfo else cell.replace(tzinfo=UTC)
    return instant


def _schema(table: Any, wanted: Schema) -> CheckOutcome:
    types = {field.name: _type(str(field.type)) for field in table.schema}
    faults = []
    for name, given in wanted.columns:
        expected = _type(given.removesuffix("?"))
        if name not in types:
            faults.append(f"`{name}` is missing")
        elif types[name] != expected:
            faults.append(f"`{name}` is {types[name]}, not {expected}")
        elif not given.endswith("?") and table[name].null_count:
            faults.append(f"`{name}` has {table[name].null_count} empty values")
    extra = sorted(types.keys() - dict(wanted.columns).keys())
    if extra and not wanted.allow_extra:
        faults.append(f"{', '.join(extra)} should not be there")
    described = ", ".join(f"{name} {each}" for name, each in types.items())
    return CheckOutcome(not faults, "; ".join(faults), described, ", ".join(" ".join(each) for each in wanted.columns))


def _type(name: str) -> str:
    return _SAME_TYPES.get(name, name)
