"""A worker process: its folder, its source of envelopes, and its shutdown."""

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
    """Another worker uses the folder."""


class ReportingFailed(ServoError):
    """Outcomes could not be reported to the server."""


class Worker:
    def __init__(self, client: AsyncClient, config: WorkerConfig) -> None:
        self._config = config
        self._slots = Slots(client, config)
        self.source = Push(self._slots, config.push) if config.push else Pull(self._slots)

    def leave(self) -> None:
        """Accepts no more envelopes, lets attempts finish within the grace period, and returns the rest."""
        self._slots.shutdown.begin()

    async def run(self) -> None:
        """Runs until shutdown is requested. Raises if the server refuses the worker for good, its
        folder is in use, or it cannot report any more.
        """
        (self._config.folder / "code").mkdir(parents=True, exist_ok=True)
        orphans.adopt()
        with _lock_folder(self._config.folder):
            await self._work()

    async def _work(self) -> None:
        try:
            # Stops taking attempts when their outcomes cannot be reported.
            await run_until_first_ends(self._serve(), self._report())
        finally:
            await self._slots.close()

    async def _serve(self) -> None:
        await self.source.serve()
        await self._slots.finish_running()
        # Idle children end while the last reports are sent.
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
    """Locks the folder, because two processes would send and delete each other's outcomes."""
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise FolderTaken(f"{folder} belongs to a worker that runs; give this one another with --state") from None
    finally:
        os.close(lock)
