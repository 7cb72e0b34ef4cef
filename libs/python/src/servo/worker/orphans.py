"""Processes that user code started in groups of their own: they come to the worker when their child ends.

A child has what it started, however far down, for as long as it lives itself (it is their reaper, as the worker is
its). What the worker finds among its own children that is none of those it started belongs to a job that is over.

What it started itself has the worker's session, as pip has, or is a child for jobs, which are listed here. A process of
user code has another session whatever it does: each child begins one, and none can be joined from outside.
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

# Children for jobs that this worker started and that live.
ours: set[int] = set()


_adopts = False


def adopt() -> None:
    """From now on they come to this process rather than to the system's first one."""
    global _adopts
    _adopts = ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1) == 0


def end_soon(looks: int = _LOOKS_MAX) -> None:
    """Ends them, and what comes to us when they end."""
    if not _adopts:
        # Then all that it has was started here, and is not for us to end.
        return
    left = {pid for pid in _children() - ours if _is_of_another_session(pid)}
    for pid in left:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
        # Nobody else asks how it ended. What has not ended yet is asked with the next look.
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
