"""Folders for outputs behind one interface: a local directory, or a bucket in Google Cloud Storage.

Failures of storage raise errors of their own, because a user's io class works with folders too, and
errors of disk and network are not its fault. Only a missing file raises the usual
FileNotFoundError.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

from .errors import AlreadyWritten, BadFolder, StorageFailed

_FILE, _BUCKET = "file://", "gs://"
_BUFFER_BYTES = 256 * 1024


class Folder(Protocol):
    """One folder. Written files are durable when the call returns, and are never overwritten."""

    @property
    def uri(self) -> str: ...
    def below(self, name: str) -> Folder: ...
    @contextmanager
    def reading(self, name: str) -> Iterator[IO[bytes]]: ...
    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]: ...
    def create(self, name: str, content: bytes) -> None:
        """Creates a file atomically; fails if it exists."""

    def size(self) -> int:
        """Bytes of all files in it."""


def open_folder(uri: str) -> Folder:
    if uri.startswith(f"{_FILE}/"):
        # Not unescaped, because partition keys contain percent signs.
        return _Directory(uri)
    if uri.startswith(_BUCKET):
        # Imported here, because most workers never need HTTP and a child starts faster without it.
        from .buckets import Bucket

        return Bucket(uri)
    if "://" not in uri:
        raise BadFolder(f"`{uri}` is not a folder for data: set output_base of dispatcher and callback to file:///…")
    raise BadFolder(
        f"`{uri}` cannot be reached from this worker: set output_base to a URI that begins with file:// or gs://"
    )


def read_file(uri: str) -> bytes:
    folder, _, name = uri.rpartition("/")
    with open_folder(f"{folder}/").reading(name) as file:
        return file.read()


class _Directory:
    def __init__(self, uri: str) -> None:
        self._uri = uri if uri.endswith("/") else f"{uri}/"
        self._path = Path(uri.removeprefix(_FILE))

    @property
    def uri(self) -> str:
        return self._uri

    def below(self, name: str) -> Folder:
        return _Directory(f"{self._uri}{name}/")

    @contextmanager
    def reading(self, name: str) -> Iterator[IO[bytes]]:
        try:
            file = io.BufferedReader(_File(self._path / name, "rb"), _BUFFER_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(f"{self._uri}{name} does not exist") from None
        except OSError as error:
            raise StorageFailed(f"{self._uri}{name} cannot be read: {error}") from error
        with file:
            yield file

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        with _failing(f"{self._uri}{name} cannot be written"):
            self._path.mkdir(parents=True, exist_ok=True)
            try:
                file = io.BufferedWriter(_File(self._path / name, "xb"), _BUFFER_BYTES)
            except FileExistsError:
                raise AlreadyWritten(f"{self._uri}{name} exists already") from None
        with file:
            yield file
            with _failing(f"{self._uri}{name} cannot be written"):
                file.flush()
                os.fsync(file.fileno())
        self._sync()

    def create(self, name: str, content: bytes) -> None:
        draft = f".{name}.{os.getpid()}"
        with self.writing(draft) as file:
            file.write(content)
        with _failing(f"{self._uri}{name} cannot be written"):
            try:
                # Unlike a rename, a hard link fails if the name exists.
                (self._path / name).hardlink_to(self._path / draft)
            except FileExistsError:
                raise AlreadyWritten(f"{self._uri}{name} exists already") from None
            finally:
                (self._path / draft).unlink()
        self._sync()

    def size(self) -> int:
        with _failing(f"{self._uri} cannot be read"):
            return sum(file.stat().st_size for file in self._path.rglob("*") if file.is_file())

    def _sync(self) -> None:
        """Syncs the folder and its parent, because a new name is durable only with its folder."""
        with _failing(f"{self._uri} cannot be written"):
            for folder in (self._path, self._path.parent):
                handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)


class _File(io.FileIO):
    """Raises the folder's errors, also when a library reads and writes the file."""

    def readinto(self, buffer: Any) -> int | None:
        with _failing(f"{self.name} cannot be read"):
            return super().readinto(buffer)

    def readall(self) -> bytes:
        with _failing(f"{self.name} cannot be read"):
            return super().readall()

    def write(self, content: Any) -> int:
        with _failing(f"{self.name} cannot be written"):
            return super().write(content)


@contextmanager
def _failing(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageFailed(f"{what}: {error}") from error
