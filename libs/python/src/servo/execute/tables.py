"""Values as tables: lists of mappings, mappings of columns, Arrow tables, and frames of pandas and
polars.

None of those packages is imported before a value of it exists, or a check needs Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any, Literal

from servo.errors import InvalidValue

from .packages import require

Kind = Literal["pyarrow", "pandas", "polars"]
_CLASSES: dict[tuple[str, str], Kind] = {
    ("pyarrow", "Table"): "pyarrow",
    ("pandas", "DataFrame"): "pandas",
    ("polars", "DataFrame"): "polars",
}


def kind_of(value: Any) -> Kind | None:
    """Compares the class's name, so that no package has to be imported."""
    return kind_of_class(type(value))


def kind_of_class(given: Any) -> Kind | None:
    for each in getattr(given, "__mro__", ()):
        found = _CLASSES.get((each.__module__.partition(".")[0], each.__name__))
        if found is not None:
            return found
    return None


def row_count(value: Any) -> int:
    if kind_of(value) is None and isinstance(value, Mapping):
        return max((len(column) for column in value.values() if isinstance(column, Sized)), default=0)
    if not isinstance(value, Sized):
        raise InvalidValue(f"a value of type {type(value).__name__} has no rows to count")
    return len(value)


def column(value: Any, name: str) -> list[Any]:
    """The cells of a column, with ``None`` for every null, independent of the package."""
    kind = kind_of(value)
    if kind is not None:
        return _frame_column(value, kind, name)
    if isinstance(value, Mapping):
        _check_name(name, value)
        return list(value[name])
    if not isinstance(value, list | tuple) or not all(isinstance(row, Mapping) for row in value):
        raise InvalidValue(
            f"a value of type {type(value).__name__} has no columns; return a frame, or a list of mappings"
        )
    if value and not any(name in row for row in value):
        _check_name(name, {key: None for row in value for key in row})
    return [row.get(name) for row in value]


def null_count(value: Any, name: str) -> int:
    columns = _arrow_columns(value, [name])
    if columns is None:
        return sum(1 for cell in column(value, name) if cell is None)
    return int(columns[name].null_count)


def repeated_rows(value: Any, names: Sequence[str]) -> int:
    """The number of rows whose values in these columns occur in an earlier row."""
    columns = _arrow_columns(value, names)
    if columns is None:
        keys = list(zip(*(column(value, name) for name in names), strict=True))
        return len(keys) - len(_different(keys))
    # Single-threaded, because merging the groups of several threads takes longer when most rows
    # differ.
    return int(columns.num_rows - columns.group_by(list(names), use_threads=False).aggregate([]).num_rows)


def _different(keys: list[tuple[Any, ...]]) -> set[Any]:
    """Lists and mappings have no hash; equal data has equal text."""
    try:
        return set(keys)
    except TypeError:
        return set(map(repr, keys))


def newest_of(value: Any, name: str) -> list[Any]:
    """Cells of a column including the newest; only the newest for times in a frame."""
    columns = _arrow_columns(value, [name])
    if columns is not None:
        import pyarrow
        import pyarrow.compute

        if pyarrow.types.is_temporal(columns[name].type):
            return [pyarrow.compute.max(columns[name]).as_py()]
    return column(value, name)


def arrow(value: Any) -> Any:
    """The value as an Arrow table."""
    require("pyarrow", "reading a value as a table")
    import pyarrow

    match kind_of(value):
        case "pyarrow":
            return value
        case "pandas":
            return pyarrow.Table.from_pandas(value, preserve_index=False)
        case "polars":
            _check_polars(value)
            return value.to_arrow()
    if isinstance(value, list | tuple) and all(isinstance(row, Mapping) for row in value):
        names = dict.fromkeys(key for row in value for key in row)
        _check_texts(names)
        return pyarrow.table({name: [row.get(name) for row in value] for name in names})
    if isinstance(value, Mapping):
        _check_texts(value)
        return pyarrow.table(dict(value))
    raise InvalidValue(f"a value of type {type(value).__name__} is not a table; return a frame, or a list of mappings")


def as_kind(value: Any, wanted: Kind | None) -> Any:
    """Converts a frame or table to the wanted kind; other values are returned unchanged."""
    found = kind_of(value)
    if wanted is None or found is None or found == wanted:
        return value
    require("pyarrow", "turning one kind of frame into another")
    return of_arrow(arrow(value), wanted)


def of_arrow(table: Any, kind: Kind) -> Any:
    match kind:
        case "pandas":
            require("pandas", "reading a pandas frame")
            return table.to_pandas()
        case "polars":
            require("polars", "reading a polars frame")
            import polars

            return polars.from_arrow(table)
        case "pyarrow":
            return table


def _arrow_columns(value: Any, names: Sequence[str]) -> Any:
    """The columns of a frame, for counting without an object per cell; None for other values and
    for types that Arrow lacks.
    """
    kind = kind_of(value)
    if kind is None:
        return None
    for name in names:
        _check_name(name, value.column_names if kind == "pyarrow" else value.columns)
    require("pyarrow", "a check of a frame's columns")
    import pyarrow

    try:
        chosen = arrow(value.select(list(names)) if kind != "pandas" else value[list(names)])
    except pyarrow.ArrowException:
        return None
    # Arrow cannot group by nested values.
    nested = any(pyarrow.types.is_nested(field.type) for field in chosen.schema)
    return None if nested else chosen


def _frame_column(value: Any, kind: Kind, name: str) -> list[Any]:
    _check_name(name, value.column_names if kind == "pyarrow" else value.columns)
    series = value[name]
    match kind:
        case "pyarrow":
            return list(series.to_pylist())
        case "polars":
            return list(series.to_list())
        case "pandas":
            # The representation of nulls in pandas depends on the column's type.
            return list(series.astype(object).where(series.notna(), None))


def check_names(names: Sequence[str]) -> None:
    """Refuses duplicate names, because such a file could be written but not read."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidValue(f"there are several columns `{twice[0]}`; give each its own name")


def _check_texts(names: Iterable[object]) -> None:
    for name in names:
        if not isinstance(name, str):
            raise InvalidValue(f"the column {name!r} has no text for a name; write one")


def _check_polars(value: Any) -> None:
    """Refuses columns of Python objects, because polars would pass their addresses to Arrow as data."""
    for name, kind in value.schema.items():
        if str(kind).startswith("Object"):
            raise InvalidValue(f"the column `{name}` holds Python objects; give it a type that Polars knows")


def _check_name(name: str, known: Any) -> None:
    if name not in known:
        raise InvalidValue(f"there is no column `{name}`; there are {', '.join(map(str, known))}")
