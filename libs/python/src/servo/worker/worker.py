"""A worker process: its folder, the door that envelopes come through, and leaving."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from servo.client.aio import AsyncClient
from servo.errors import ServoError

from . import orphans
from .config import PushConfig, WorkerConfig
from .pull import Pull
from .push import Push
from .slots import Slots
from .tasks import run_until_first_ends

__all__ = ["FolderTaken", "PushConfig", "ReportingFailed", "Worker", "WorkerConfig"]

_log = logging.getLogger("servo.worker")


class FolderTaken(ServoError):
    """Another worker keeps its outcomes there."""


class ReportingFailed(ServoError):
    """Outcomes would not reach the server."""


class Worker:
    def __init__(self, client: AsyncClient, config: WorkerConfig) -> None:
        self._config = config
        self._slots = Slots(client, config)
        self.door = Push(self._slots, config.push) if config.push else Pull(self._slots)

    def leave(self) -> None:
        """Take nothing more, finish what runs within the grace, give the rest back."""
        self._slots.shutdown.begin()

    async def run(self) -> None:
        """Until it is told to leave. Raises when the server refuses the worker for good, its folder is taken, or it can
        report no more."""
        (self._config.folder / "code").mkdir(parents=True, exist_ok=True)
        orphans.adopt()
        with _lock_folder(self._config.folder):
            await self._work()

    async def _work(self) -> None:
        try:
            # Who cannot tell how attempts end must not go on taking them.
            await run_until_first_ends(self._serve(), self._report())
        finally:
            await self._slots.close()

    async def _serve(self) -> None:
        await self.door.serve()
        await self._slots.finish_running()
        # Processes without work end while the server is told.
        await asyncio.gather(self._slots.close(), self._slots.all_answered())

    async def _report(self) -> None:
        try:
            await self._slots.reports.run()
        except Exception as error:
            _log.exception("reports to the server ended")
            raise ReportingFailed(
                f"the worker cannot report any more ({type(error).__name__}: {error}); outcomes without an answer stay "
                f"in {self._config.folder} and are sent by the next worker with that --state"
            ) from error


@contextlib.contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Two processes would send, and forget, each other's outcomes."""
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise FolderTaken(f"{folder} belongs to a worker that runs; give this one another with --state") from None
    finally:
        os.close(lock)
