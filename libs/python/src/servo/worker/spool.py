"""Outcomes on disk until the server has answered them, so that a worker that dies loses none.

Outcomes that arrive together are written with one sync, because a sync takes the same time for one
as for a hundred. A file grows until all its outcomes are answered or it is large enough, because
creating files is slower than growing one.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from google.protobuf.message import DecodeError

from servo.v1 import callback_pb2

_SUFFIX = ".outcomes"
_FILE_BYTES_MAX = 256 * 1024
_LENGTH = struct.Struct(">I")


class Spool:
    """``keep`` and ``forget`` block on the disk and are called from one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._current: Path | None = None
        self._file = -1
        self._size = 0

    def keep(self, items: Sequence[callback_pb2.CallbackItem]) -> Path:
        """The outcomes are durable when this returns. The file may be forgotten once all its outcomes are answered."""
        body = callback_pb2.StreamCallbacksRequest(items=items).SerializeToString()
        if self._current is None or self._size > _FILE_BYTES_MAX:
            self._open(self._folder / f"{time.time_ns()}{_SUFFIX}")
        try:
            self._write(_LENGTH.pack(len(body)) + body)
        except OSError:
            self._take_back()
            raise
        self._size += _LENGTH.size + len(body)
        assert self._current
        return self._current

    def forget(self, path: Path) -> None:
        """Called when all outcomes of the file are answered. The current file is emptied rather than replaced."""
        if path == self._current:
            os.ftruncate(self._file, 0)
            self._size = 0
        else:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._current is None:
            return
        os.close(self._file)
        if self._size == 0:
            self._current.unlink(missing_ok=True)
        self._current = None

    def left(self) -> Iterator[tuple[Path, list[callback_pb2.CallbackItem]]]:
        """The outcomes that an earlier process could not deliver."""
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            items = list(_read(path.read_bytes()))
            if items:
                yield path, items
            else:
                path.unlink(missing_ok=True)

    def _write(self, content: bytes) -> None:
        while content:
            content = content[os.write(self._file, content) :]
        os.fdatasync(self._file)

    def _take_back(self) -> None:
        """Removes a partial record, which would make the records after it unreadable."""
        try:
            os.ftruncate(self._file, self._size)
        except OSError:
            # Closes the file, so that nothing is written after the partial record.
            os.close(self._file)
            self._current = None

    def _open(self, path: Path) -> None:
        self.close()
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        self._current, self._size = path, 0
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _read(content: bytes) -> Iterator[callback_pb2.CallbackItem]:
    """Reads up to a record that a crash cut off; the server notices the missing heartbeats of the attempts after it."""
    offset = 0
    while offset + _LENGTH.size <= len(content):
        (length,) = _LENGTH.unpack_from(content, offset)
        offset += _LENGTH.size
        try:
            yield from callback_pb2.StreamCallbacksRequest.FromString(content[offset : offset + length]).items
        except DecodeError:
            return
        offset += length
