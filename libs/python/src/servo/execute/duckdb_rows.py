"""Query results of DuckDB as Python values."""

from __future__ import annotations

from typing import Any


def fetch_rows(relation: Any) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names and rows. Converted through Arrow, because DuckDB needs another package for times with a zone."""
    columns = [_column(each) for each in relation.to_arrow_table().columns]
    return list(relation.columns), list(zip(*columns, strict=True))


def _column(given: Any) -> list[Any]:
    import pyarrow

    # Python's times have a resolution of microseconds.
    if pyarrow.types.is_timestamp(given.type):
        given = given.cast(pyarrow.timestamp("us", given.type.tz), safe=False)
    return list(given.to_pylist())
