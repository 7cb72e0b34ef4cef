"""Child processes that end with this process, and that get Ctrl-C only from it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import IO, Any

_PR_SET_PDEATHSIG = 1


def start(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    stdout: int | IO[Any],
    stderr: int | IO[Any],
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        text=True,
        start_new_session=True,
        preexec_fn=_end_with_parent,
    )


def stop(process: subprocess.Popen[str], grace: float) -> None:
    """Sends SIGTERM, waits, then kills the whole process group."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(grace)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
