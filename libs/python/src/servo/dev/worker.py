"""A worker beside the mesh."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from . import process
from .mesh import Mesh

_LEAVE_SECONDS = 15.0


@contextmanager
def working(mesh: Mesh, folder: Path, *, slots: int) -> Iterator[None]:
    command = [sys.executable, "-m", "servo.cli", "worker", "--workspace", mesh.workspace]
    command += ["--slots", str(slots), "--state", str(folder)]
    with (mesh.logs / "worker.log").open("a") as log:
        started = process.start(command, environment=mesh.environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            process.stop(started, _LEAVE_SECONDS)
