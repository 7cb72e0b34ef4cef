"""Commits an output: data, ``_metadata.json``, then ``_commit.json``, which must not exist yet.

The control plane decides whether readers get the output; until then the folder is not known to
anybody else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

from servo.define.io import Io, is_custom
from servo.errors import ServoError
from servo.execute import tables
from servo.execute.errors import InputMissing

from . import formats
from .errors import StorageFailed
from .folders import Folder, open_folder

METADATA, MARKER = "_metadata.json", "_commit.json"


@dataclass(frozen=True, slots=True)
class OutputIdentity:
    """The identity of an output."""

    run_id: str
    # Equal to the id of the attempt that made it.
    materialization_id: str
    asset_key: str
    partition_key: str


def commit(folder: Folder, value: Any, io: Io, about: OutputIdentity, inputs: list[dict[str, Any]]) -> dict[str, Any]:
    """Stores the value and returns the report of it. Exceptions of a user's io class pass through,
    because they are errors of user code.
    """
    with nullcontext() if is_custom(io) else _writing(folder.uri):
        stored = formats.store(folder, value, io)
    with _writing(folder.uri):
        return _commit(folder, stored, about, inputs)


def read(uri: str, wanted: tables.Kind | None = None) -> tuple[Any, int]:
    """The value in a committed folder, and its size in bytes. Exceptions of a user's io class pass through."""
    folder = open_folder(uri)
    with _reading(uri):
        with folder.reading(METADATA) as file:
            facts: Mapping[str, Any] = json.load(file)
        name, size = str(facts["format"]), int(facts["byte_size"])
        if not is_custom(name):
            return formats.load(folder, facts, wanted), size
    return formats.custom(name).load(folder), size


def row_count(uri: str) -> int | None:
    """The row count of a committed folder, if its format has one."""
    try:
        with open_folder(uri).reading(METADATA) as file:
            rows = json.load(file).get("row_count")
    except (OSError, ValueError, AttributeError) as error:
        raise StorageFailed(f"{uri} cannot be read: {error}") from error
    return rows if isinstance(rows, int) else None


@contextmanager
def _writing(uri: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageFailed(f"{uri} cannot be written: {error}") from error


@contextmanager
def _reading(uri: str) -> Iterator[None]:
    try:
        yield
    except (ServoError, MemoryError):
        raise
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise InputMissing(f"there is no data at {uri}; materialize it again") from error
        raise StorageFailed(f"{uri} cannot be read: {error}") from error
    # Damaged content can raise anything: a pickle whose class is gone, a truncated table.
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        raise InputMissing(f"the data at {uri} cannot be read ({cause}); materialize it again") from error


def _commit(
    folder: Folder, stored: formats.Stored, about: OutputIdentity, inputs: list[dict[str, Any]]
) -> dict[str, Any]:
    size = folder.size()
    facts = {**asdict(stored), "schema_hash": stored.schema_hash, "byte_size": size, "inputs": inputs}
    metadata = _json({**asdict(about), **facts})
    folder.create(METADATA, metadata)
    marker = _json({**asdict(about), "metadata_sha256": hashlib.sha256(metadata).hexdigest()})
    folder.create(MARKER, marker)
    return {
        "asset_key": about.asset_key,
        "partition_key": about.partition_key,
        "uri": folder.uri,
        "commit_digest": hashlib.sha256(marker).hexdigest(),
        "row_count": stored.row_count,
        "byte_size": size,
        "schema_hash": stored.schema_hash,
        "metadata": {"format": stored.format},
    }


def _json(facts: Mapping[str, Any]) -> bytes:
    return json.dumps(facts, sort_keys=True, indent=1).encode() + b"\n"
