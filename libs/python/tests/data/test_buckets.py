"""Outputs in Google Cloud Storage, against an emulator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from servo.data import google as calls
from servo.data.commit import OutputIdentity, commit, read
from servo.data.errors import AlreadyWritten, StorageFailed
from servo.data.folders import open_folder, read_file
from servo.execute.errors import InputMissing

from ..google_emulator import Google, google

URI = "gs://lake/acme/prod/n/a/day=d:2026-01-31,who=s:A%201/"
ABOUT = OutputIdentity("run_x", "ATTEMPT", "n/a", "day=d:2026-01-31,who=s:A%201")


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Google]:
    with google() as running:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", running.address)
        monkeypatch.setattr(calls, "_PAUSE_FIRST", 0.001)
        yield running


def test_values_round_trip_through_a_bucket(cloud: Google) -> None:
    output = commit(open_folder(URI), [{"id": 1}, {"id": 2}], "parquet", ABOUT, [])
    folder = URI.removeprefix("gs://lake/")
    assert sorted(name for _, name in cloud.objects) == [
        f"{folder}_commit.json",
        f"{folder}_metadata.json",
        f"{folder}data.parquet",
    ]
    assert output["byte_size"] == len(cloud.objects["lake", f"{folder}data.parquet"])
    assert read(output["uri"]) == ([{"id": 1}, {"id": 2}], output["byte_size"])
    assert read_file(f"{URI}_commit.json") == cloud.objects["lake", f"{folder}_commit.json"]
    # The listing has several pages.
    assert open_folder(URI).size() == sum(map(len, cloud.objects.values()))


def test_f08_existing_objects_are_not_overwritten(cloud: Google) -> None:
    open_folder(URI).create("_commit.json", b"first")
    with pytest.raises(AlreadyWritten, match=r"_commit\.json exists already"):
        open_folder(URI).create("_commit.json", b"second")
    assert list(cloud.objects.values()) == [b"first"]


def test_lost_response_of_an_upload_is_not_a_conflict(cloud: Google) -> None:
    cloud.failing, cloud.after_writing = 1, True
    open_folder(URI).create("_commit.json", b"mine")
    assert list(cloud.objects.values()) == [b"mine"]


def test_large_outputs_are_uploaded_in_pieces(cloud: Google, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("servo.data.buckets.PIECE_BYTES", 1000)
    content = bytes(range(256)) * 12
    # One piece is stored in part, and one request is lost.
    cloud.kept_of_piece = 300
    with open_folder(URI).writing("data") as file:
        file.write(content)
    cloud.failing = 1
    with open_folder(URI).writing("more") as file:
        file.write(content)
    assert set(cloud.objects.values()) == {content}
    with open_folder(URI).reading("data") as file:
        assert file.read() == content
    with pytest.raises(AlreadyWritten), open_folder(URI).writing("data") as file:
        file.write(content)


def test_a_function_that_fails_writes_nothing(cloud: Google) -> None:
    def write() -> None:
        with open_folder(URI).writing("data") as file:
            file.write(b"half")
            raise KeyError

    with pytest.raises(KeyError):
        write()
    assert not cloud.objects


def test_missing_objects_and_outages_raise_different_errors(cloud: Google) -> None:
    with pytest.raises(InputMissing, match=r"there is no data at gs://lake/.*; materialize it again"):
        read(URI)
    cloud.failing = 1_000
    with pytest.raises(StorageFailed, match="cannot be read: HTTP 503 try again"):
        read(URI)
    with pytest.raises(StorageFailed, match="cannot be written: HTTP 503"):
        open_folder(URI).create("x", b"")
    with pytest.raises(StorageFailed, match="cannot be read: HTTP 503"):
        open_folder(URI).size()


def test_an_empty_object_is_read(cloud: Google) -> None:
    open_folder(URI).create("empty", b"")
    assert cloud.objects
    with open_folder(URI).reading("empty") as file:
        assert file.read() == b""
