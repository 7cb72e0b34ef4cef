"""The worker of ``servo dev``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from servo.errors import ServoError

from . import process
from .mesh import Mesh

# Short, so that Ctrl-C does not wait for long tasks: their attempts are returned, and the next
# `servo dev` continues them.
_DRAIN_GRACE = 5.0
_DRAIN_SECONDS_MAX = 3 * _DRAIN_GRACE


class WorkerFailed(ServoError):
    """The worker ended unexpectedly."""


@dataclass(frozen=True, slots=True)
class RunningWorker:
    process: subprocess.Popen[str]
    log: Path

    def check(self) -> None:
        """Raises if the worker has ended."""
        if self.process.poll() is not None:
            log_lines = self.log.read_text(errors="replace").splitlines()
            raise WorkerFailed(f"the worker ended: {log_lines[-1] if log_lines else 'it printed nothing'} ({self.log})")


@contextmanager
def working(mesh: Mesh, folder: Path, *, slots: int) -> Iterator[RunningWorker]:
    command = [sys.executable, "-m", "servo.cli", "worker", "--workspace", mesh.workspace]
    command += ["--slots", str(slots), "--state", str(folder), "--drain-grace", str(_DRAIN_GRACE)]
    file = mesh.logs / "worker.log"
    with file.open("a") as log:
        started = process.start(command, environment=mesh.worker_environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield RunningWorker(started, file)
        finally:
            process.stop(started, _DRAIN_SECONDS_MAX)
