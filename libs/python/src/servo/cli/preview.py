"""Previews of an asset's newest data, which DuckDB reads from storage."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from servo.errors import InvalidValue

from .exit_codes import NothingFound

if TYPE_CHECKING:
    from servo.client.sync import Client


def newest(client: Client, key: str, partitions: int) -> list[tuple[str, str]]:
    """Partition and folder of the newest promoted version of the newest partitions, in order."""
    found: dict[str, str] = {}
    for each in client.materializations(filter=f'asset_key = "{key}" AND state = PROMOTED'):
        if each.output.metadata.get("format", "parquet") != "parquet":
            raise InvalidValue(f"{key} is stored as {each.output.metadata['format']}: only Parquet is shown as a table")
        found.setdefault(each.output.partition_key, each.output.uri)
    if not found:
        raise NothingFound(f"{key} has no data yet: `servo run +{key}` makes some")
    return sorted(found.items())[-partitions:]


def rows(folders: list[str], limit: int) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names, and at most ``limit`` rows."""
    from servo.execute.duckdb_rows import fetch_rows
    from servo.execute.packages import require

    for package in ("duckdb", "pyarrow"):
        require(package, "a preview")
    import duckdb

    files = [f"{folder.removeprefix('file://').rstrip('/')}/data.parquet" for folder in folders]
    with duckdb.connect() as database:
        # Versions may have different columns. Folder names contain partition keys, which are not
        # columns.
        query = "SELECT * FROM read_parquet($1, union_by_name = true, hive_partitioning = false) LIMIT $2"
        return fetch_rows(database.sql(query, params=[files, limit]))


def plain(columns: list[str], values: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Replaces NaN and Infinity, which JSON cannot represent."""
    return [{name: _plain(each) for name, each in zip(columns, row, strict=True)} for row in values]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)
