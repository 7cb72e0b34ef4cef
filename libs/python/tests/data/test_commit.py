"""Values in a folder, and the marker that commits them."""

from __future__ import annotations

import hashlib
import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pytest

from servo.data.commit import OutputIdentity, commit, read
from servo.data.errors import AlreadyWritten, BadFolder, StorageFailed
from servo.data.folders import open_folder
from servo.data.formats import CannotStore
from servo.execute.errors import InputMissing
from servo.execute.packages import PackageMissing
from servo.execute.tables import Kind

ABOUT = OutputIdentity("run_x", "A1", "shop/orders", "day=d:2026-01-31")
COLUMNS = {"id": [1, 2], "note": ["a", None]}
ROWS = [{"id": 1, "note": "a"}, {"id": 2, "note": None}]


@dataclass(frozen=True)
class Odd:
    day: date


class Lines:
    """A user's io class."""

    def store(self, value: list[str], folder: Any) -> None:
        folder.create("lines.txt", "\n".join(value).encode())

    def load(self, folder: Any) -> list[str]:
        with folder.reading("lines.txt") as file:
            return str(file.read().decode()).split("\n")


class Denied:
    """A user's io class whose database refuses."""

    def store(self, value: str, folder: Any) -> None:
        if value == "while writing":
            with folder.writing("data"):
                raise FileExistsError("the table exists already")
        if value == "at once":
            raise PermissionError("the database says no")
        folder.create("data", value.encode())

    def load(self, folder: Any) -> str:
        with folder.reading("data") as file:
            wanted = str(file.read().decode())
        if wanted == "unreadable":
            raise PermissionError("the database says no")
        with folder.reading(wanted) as file:
            return str(file.read())


class Large:
    def store(self, value: int, folder: Any) -> None:
        with folder.writing("data") as file:
            file.write(b"x" * value)

    def load(self, folder: Any) -> int:
        with folder.reading("data") as file:
            return len(file.read())


def uri(folder: Path) -> str:
    return f"file://{folder}/day=d:2026-01-31/A%201/"


@pytest.mark.parametrize(
    ("value", "io", "format_", "rows"),
    [
        ({"a": [1, 2.5, True, None, "ü"]}, "", "json", None),
        ([1, 2, 3], "", "json", 3),
        ((1, 2), "", "pickle", 2),
        ({1: "one"}, "", "pickle", None),
        (Odd(date(2026, 1, 31)), "", "pickle", None),
        ([1], "pickle", "pickle", 1),
        (ROWS, "parquet", "parquet", 2),
        (COLUMNS, "parquet", "parquet", 2),
        (["a", "b"], f"{__name__}.Lines", f"{__name__}.Lines", 2),
    ],
)
def test_values_round_trip(tmp_path: Path, value: Any, io: str, format_: str, rows: int | None) -> None:
    output = commit(open_folder(uri(tmp_path)), value, io, ABOUT, [])
    assert (output["metadata"], output["row_count"]) == ({"format": format_}, rows)
    found, size = read(output["uri"])
    assert (found, type(found), size) == (value, type(value), output["byte_size"])


FRAMES: dict[Kind, Any] = {
    "pandas": pandas.DataFrame(COLUMNS, index=[7, 8]),
    "polars": polars.DataFrame(COLUMNS),
    "pyarrow": pyarrow.table(COLUMNS),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_keep_their_kind(tmp_path: Path, kind: Kind) -> None:
    frame = FRAMES[kind]
    output = commit(open_folder(uri(tmp_path)), frame, "", ABOUT, [])
    found, _ = read(output["uri"])
    assert found.equals(frame)
    assert type(found) is type(frame)
    assert (output["row_count"], len(output["schema_hash"])) == (2, 64)


@pytest.mark.parametrize("kind", FRAMES)
def test_reader_gets_the_annotated_kind_of_frame(tmp_path: Path, kind: Kind) -> None:
    output = commit(open_folder(uri(tmp_path)), ROWS, "parquet", ABOUT, [])
    found, _ = read(output["uri"], kind)
    assert type(found) is type(FRAMES[kind])


def test_schema_hash_depends_on_names_and_types_only(tmp_path: Path) -> None:
    def hash_of(name: str, columns: dict[str, list[Any]]) -> str:
        output = commit(open_folder(f"file://{tmp_path}/{name}/"), pyarrow.table(columns), "", ABOUT, [])
        return str(output["schema_hash"])

    first = hash_of("first", {"id": [1]})
    assert first == hashlib.sha256(b'[["id","int64"]]').hexdigest()
    assert hash_of("other_data", {"id": [2, 3]}) == first
    assert hash_of("other_type", {"id": ["1"]}) != first
    assert hash_of("other_name", {"no": [1]}) != first


def test_marker_matches_the_reported_digest(tmp_path: Path) -> None:
    inputs = [{"asset_key": "raw/x", "parameter": "x", "versions": [["", "B", "file:///b/"]]}]
    output = commit(open_folder(uri(tmp_path)), [1], "", ABOUT, inputs)
    assert output["uri"] == uri(tmp_path)
    folder = tmp_path / "day=d:2026-01-31" / "A%201"
    marker = (folder / "_commit.json").read_bytes()
    assert output["commit_digest"] == hashlib.sha256(marker).hexdigest()
    content = json.loads(marker)
    assert (content["run_id"], content["materialization_id"]) == ("run_x", "A1")
    metadata = (folder / "_metadata.json").read_bytes()
    assert content["metadata_sha256"] == hashlib.sha256(metadata).hexdigest()
    assert json.loads(metadata)["inputs"] == inputs
    # No other file remains.
    assert sorted(file.name for file in folder.iterdir()) == ["_commit.json", "_metadata.json", "data.json"]


@pytest.mark.parametrize("left", ["data.json", "_metadata.json", "_commit.json"])
def test_inv_19_existing_files_are_not_overwritten(tmp_path: Path, left: str) -> None:
    """Another process of the same attempt has written this file."""
    folder = tmp_path / "A"
    folder.mkdir()
    (folder / left).write_text("theirs")
    with pytest.raises(AlreadyWritten, match=left):
        commit(open_folder(f"file://{folder}"), [1], "", ABOUT, [])
    assert (folder / left).read_text() == "theirs"
    assert not [file for file in folder.iterdir() if file.name.startswith(".")]


def test_a_value_that_cannot_be_stored_leaves_no_marker(tmp_path: Path) -> None:
    for value, io, part in [
        (lambda: 1, "", "a value of type function cannot be stored: .*return a frame or plain values, or None"),
        ((1, 2), "json", "JSON holds lists"),
        (7, "parquet", "a value of type int cannot be stored as Parquet: a value of type int is not a table"),
        ([1], "feather", "io `feather` is neither parquet, json nor pickle"),
        (pandas.DataFrame([[1, 2]], columns=["a", "a"]), "", "Duplicate column names"),
        (pyarrow.table([[1], [2]], names=["a", "a"]), "", "there are several columns `a`; give each its own name"),
        (polars.DataFrame({"a": [object()]}), "", "the column `a` holds Python objects"),
    ]:
        with pytest.raises(CannotStore, match=part):
            commit(open_folder(f"file://{tmp_path}/{io or 'usual'}"), value, io, ABOUT, [])
    assert not list(tmp_path.rglob("_commit.json"))


def test_unreadable_data_raises_input_missing(tmp_path: Path) -> None:
    with pytest.raises(InputMissing, match="there is no data at file:///ghost/; materialize it again"):
        read("file:///ghost/")
    output = commit(open_folder(uri(tmp_path)), pyarrow.table(COLUMNS), "", ABOUT, [])
    (tmp_path / "day=d:2026-01-31" / "A%201" / "data.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputMissing, match=r"cannot be read .Arrow.*materialize it again"):
        read(output["uri"])


def test_unknown_folders_name_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(BadFolder, match="set output_base of dispatcher and callback to file:///"):
        open_folder("acme/prod/")
    with pytest.raises(BadFolder, match="`s3://bucket/x` cannot be reached from this worker"):
        open_folder("s3://bucket/x")
    with pytest.raises(BadFolder, match="names no bucket"):
        open_folder("gs://")
    (tmp_path / "file").touch()
    with pytest.raises(StorageFailed, match="cannot be written"):
        commit(open_folder(f"file://{tmp_path}/file/below/"), [1], "", ABOUT, [])


@pytest.mark.parametrize(("value", "error"), [("at once", PermissionError), ("while writing", FileExistsError)])
def test_errors_of_a_user_io_pass_through_on_store(tmp_path: Path, value: str, error: type[OSError]) -> None:
    with pytest.raises(error):
        commit(open_folder(uri(tmp_path)), value, Denied, ABOUT, [])
    assert not list(tmp_path.rglob("_commit.json"))


def test_errors_of_a_user_io_pass_through_on_load(tmp_path: Path) -> None:
    def stored(value: str) -> str:
        return str(commit(open_folder(f"file://{tmp_path}/{value}/"), value, Denied, ABOUT, [])["uri"])

    with pytest.raises(PermissionError, match="the database says no"):
        read(stored("unreadable"))
    with pytest.raises(FileNotFoundError, match="ghost/ghost does not exist"):
        read(stored("ghost"))
    # Errors of the folder are reported as storage errors.
    there = stored("folder")
    (tmp_path / "folder" / "folder").mkdir()
    with pytest.raises(StorageFailed, match=r"folder/folder cannot be read: .*Is a directory"):
        read(there)


@contextmanager
def small_files() -> Iterator[None]:
    """A disk that refuses further writes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize(
    ("value", "io"),
    [
        (1_000_000, Large),
        # Everything stays in the buffer until the end.
        (2_000, Large),
        (["x"] * 1_000, "json"),
        (["x"] * 1_000, "pickle"),
        (pyarrow.table({"a": range(10_000)}), "parquet"),
    ],
)
def test_storage_failure_is_reported_for_every_writer(tmp_path: Path, value: Any, io: Any) -> None:
    with small_files(), pytest.raises(StorageFailed, match=r"cannot be written: \[Errno 27\] File too large"):
        commit(open_folder(uri(tmp_path)), value, io, ABOUT, [])
    (tmp_path / "file").touch()
    with pytest.raises(StorageFailed, match=r"cannot be written: .*Not a directory"):
        commit(open_folder(f"file://{tmp_path}/file/below/"), value, io, ABOUT, [])


def test_without_pyarrow_frames_are_refused_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(PackageMissing, match=r"needs pyarrow.*pip install 'servo-orchestrator\[tables\]'"):
        commit(open_folder(uri(tmp_path)), polars.DataFrame(COLUMNS), "", ABOUT, [])
