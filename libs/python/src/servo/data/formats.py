"""Values as files: frames and tables as Parquet, plain values as JSON, everything else as pickle,
or as the asset's ``io`` says.

``io`` names a format, or a user's class ``package.module.Name`` with ``store(value, folder)`` and
``load(folder)``.
"""

from __future__ import annotations

import importlib
import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from servo.define.io import Io, io_name
from servo.errors import InvalidValue, ServoError
from servo.execute import tables
from servo.execute.packages import require
from servo.model.canonical import sha256_hex

from .folders import Folder

_PLAIN = (str, int, float, bool, type(None))
# Tables that user code returned in these forms instead of as a frame.
_ROWS, _COLUMNS = "rows", "columns"


class CannotStore(ServoError):
    """The value cannot be stored in its format."""


@dataclass(frozen=True, slots=True)
class Stored:
    format: str
    # The form in which the value is loaded, such as "pandas" or "rows"; empty if the format
    # determines it.
    kind: str = ""
    row_count: int | None = None
    # Column names and types.
    schema: tuple[tuple[str, str], ...] = ()

    @property
    def schema_hash(self) -> str:
        if not self.schema:
            return ""
        return sha256_hex([list(each) for each in self.schema])


def store(folder: Folder, value: Any, io: Io) -> Stored:
    match io_name(io) or _default_format(value):
        case "parquet":
            return _store_parquet(folder, value)
        case "json":
            return _store_json(folder, value)
        case "pickle":
            return _store_pickle(folder, value)
        case name:
            custom(io).store(value, folder)
            return Stored(name, row_count=_rows(value))


def load(folder: Folder, stored: Mapping[str, Any], wanted: tables.Kind | None = None) -> Any:
    """``stored`` is the content of ``_metadata.json``; ``wanted`` converts to another kind of frame."""
    match stored["format"]:
        case "parquet":
            return _load_parquet(folder, wanted or stored["kind"])
        case "json":
            with folder.reading("data.json") as file:
                return json.load(file)
        case "pickle":
            with folder.reading("data.pickle") as file:
                # Safe, because a task of the same workspace wrote it and the workspace's code runs
                # here anyway.
                return pickle.load(file)
        case name:
            return custom(name).load(folder)


def custom(io: Io, *needed: str) -> Any:
    """An instance of the user's class, which must have the ``needed`` methods, by default store and load."""
    found = _class(io) if isinstance(io, str) else io
    needed = needed or ("store", "load")
    if found is None or not all(hasattr(found, name) for name in needed):
        name = io_name(io)
        raise CannotStore(
            f"io `{name}` is neither parquet, json nor pickle, nor a class package.module.Name with "
            f"{' and '.join(needed)}"
        )
    return found()


def _default_format(value: Any) -> str:
    if tables.kind_of(value) is not None:
        return "parquet"
    return "json" if _is_plain(value) else "pickle"


def _is_plain(value: Any) -> bool:
    """Whether a round trip through JSON preserves the value exactly."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        kind = type(each)
        if kind is list:
            waiting.extend(each)
        elif kind is dict:
            if not all(type(key) is str for key in each):
                return False
            waiting.extend(each.values())
        elif kind not in _PLAIN:
            return False
    return True


def _store_json(folder: Folder, value: Any) -> Stored:
    if not _is_plain(value):
        raise CannotStore(
            "JSON holds lists, mappings with text keys, texts, numbers, bools and None; leave io out to have anything "
            "pickled"
        )
    with folder.writing("data.json") as file:
        # `json` preserves surrogates and numbers such as NaN.
        file.write(json.dumps(value).encode())
    return Stored("json", row_count=_rows(value))


def _store_pickle(folder: Folder, value: Any) -> Stored:
    try:
        with folder.writing("data.pickle") as file:
            pickle.dump(value, file, protocol=5)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise CannotStore(
            f"a value of type {type(value).__name__} cannot be stored: {error}; return a frame or plain values, or "
            "None if the function stores its data itself"
        ) from error
    return Stored("pickle", row_count=_rows(value))


def _store_parquet(folder: Folder, value: Any) -> Stored:
    require("pyarrow", "storing a table as Parquet")
    import pyarrow.parquet

    kind = tables.kind_of(value) or (_COLUMNS if isinstance(value, Mapping) else _ROWS)
    try:
        # Includes the index of a pandas frame; checks leave it out.
        table = pyarrow.Table.from_pandas(value) if kind == "pandas" else tables.arrow(value)
        tables.check_names(table.column_names)
    # Any error that the packages raise for unsupported columns.
    except (InvalidValue, pyarrow.ArrowException, ValueError, TypeError) as error:
        raise CannotStore(f"a value of type {type(value).__name__} cannot be stored as Parquet: {error}") from error
    with folder.writing("data.parquet") as file:
        pyarrow.parquet.write_table(table, file)
    schema = tuple((field.name, str(field.type)) for field in table.schema)
    return Stored("parquet", kind, table.num_rows, schema)


def _load_parquet(folder: Folder, kind: str) -> Any:
    require("pyarrow", "reading Parquet")
    import pyarrow.parquet

    with folder.reading("data.parquet") as file:
        table = pyarrow.parquet.read_table(file)
    match kind:
        case "pandas" | "polars":
            return tables.of_arrow(table, kind)
        case "rows":
            return table.to_pylist()
        case "columns":
            return table.to_pydict()
        case _:
            return table


def _class(name: str) -> Any:
    module, _, kind = name.rpartition(".")
    return getattr(importlib.import_module(module), kind, None) if module else None


def _rows(value: Any) -> int | None:
    return len(value) if isinstance(value, list | tuple) else None
