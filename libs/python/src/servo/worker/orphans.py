"""Processes that user code started in sessions of their own, which become children of the worker
when their child process ends.

A child process is the reaper of everything that it started, and the worker is the reaper of the
child. So a process among the worker's children that the worker did not start belongs to a finished
job. The worker's own subprocesses, such as pip, have the worker's session; children for jobs are
listed here. A process of user code always has another session: each child begins one, and a session
cannot be joined from outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_LOOKS_MAX = 50
_LOOK_AGAIN = 0.1

# Running children for jobs.
ours: set[int] = set()


_adopts = False


def adopt() -> None:
    """Makes this process the reaper of orphans instead of init."""
    global _adopts
    _adopts = ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1) == 0


def end_soon(looks: int = _LOOKS_MAX) -> None:
    """Kills orphans, and the processes that become orphans when those end."""
    if not _adopts:
        # Without adoption, all children of this process were started by it and must not be killed.
        return
    left = {pid for pid in _children() - ours if _is_of_another_session(pid)}
    for pid in left:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
        # Reaps it, because nothing else does. A process that has not ended yet is reaped at the
        # next look.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    if left and looks:
        asyncio.get_running_loop().call_later(_LOOK_AGAIN, end_soon, looks - 1)


def _children() -> set[int]:
    found: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.update(int(pid) for pid in (thread / "children").read_text().split())
    return found


def _is_of_another_session(pid: int) -> bool:
    try:
        return os.getsid(pid) != os.getsid(0)
    except OSError:
        return False
