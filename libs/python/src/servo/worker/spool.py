"""Outcomes on disk until the server has answered them: a worker that dies loses none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from google.protobuf.message import DecodeError

from servo.v1 import callback_pb2


class Spool:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def keep(self, item: callback_pb2.CallbackItem) -> None:
        """Durable before it is sent."""
        path = self._path(item)
        partial = path.with_suffix(".partial")
        with partial.open("wb") as file:
            file.write(item.SerializeToString())
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)

    def drop(self, item: callback_pb2.CallbackItem) -> None:
        self._path(item).unlink(missing_ok=True)

    def left(self) -> Iterator[callback_pb2.CallbackItem]:
        """What an earlier process could not deliver."""
        for path in sorted(self._folder.glob("*.outcome")):
            try:
                yield callback_pb2.CallbackItem.FromString(path.read_bytes())
            except DecodeError:
                # Cut off by a crash of the machine; the server will miss its heartbeat.
                path.unlink(missing_ok=True)

    def _path(self, item: callback_pb2.CallbackItem) -> Path:
        return self._folder / f"{item.finish.attempt_id}.outcome"
