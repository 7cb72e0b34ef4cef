"""Outcomes on disk until the server has answered them: a worker that dies loses none.

What ends at the same time shares a file: a disk takes as long for one outcome as for a hundred.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from google.protobuf.message import DecodeError

from servo.v1 import callback_pb2

_SUFFIX = ".outcomes"


class Spool:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def keep(self, items: Sequence[callback_pb2.CallbackItem]) -> Path:
        """Durable when this returns; the file goes when all of them are answered."""
        path = self._folder / f"{items[0].finish.attempt_id}{_SUFFIX}"
        partial = path.with_suffix(".partial")
        with partial.open("wb") as file:
            file.write(callback_pb2.StreamCallbacksRequest(items=items).SerializeToString())
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        return path

    def left(self) -> Iterator[tuple[Path, list[callback_pb2.CallbackItem]]]:
        """What an earlier process could not deliver."""
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            try:
                yield path, list(callback_pb2.StreamCallbacksRequest.FromString(path.read_bytes()).items)
            except DecodeError:
                # Cut off by a crash of the machine; the server will miss its heartbeat.
                path.unlink(missing_ok=True)
