"""Outcomes on disk until the server has answered them: a worker that dies loses none.

What ends at the same time is written at once: a disk takes as long for one outcome as for a hundred. A file grows
until all in it are answered, or until it is large enough; making files takes a disk longer than growing one.
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
    """``keep`` and ``forget`` take the disk's time, and are called from one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._current: Path | None = None
        self._file = -1
        self._size = 0

    def keep(self, items: Sequence[callback_pb2.CallbackItem]) -> Path:
        """Durable when this returns. The file it lies in may be forgotten when all in it are answered."""
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
        """All in it are answered. What grows is emptied rather than made anew."""
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
        """What an earlier process could not deliver."""
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
        """What was begun and not finished would hide everything behind it."""
        try:
            os.ftruncate(self._file, self._size)
        except OSError:
            # Then nothing more goes behind it.
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
    """Up to where a crash cut it off: of the attempts behind that the server will miss the heartbeat."""
    place = 0
    while place + _LENGTH.size <= len(content):
        (length,) = _LENGTH.unpack_from(content, place)
        place += _LENGTH.size
        try:
            yield from callback_pb2.StreamCallbacksRequest.FromString(content[place : place + length]).items
        except DecodeError:
            return
        place += length
