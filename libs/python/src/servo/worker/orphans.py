"""Processes that user code started in groups of their own: they come to the worker when their child ends.

A child has what it started, however far down, for as long as it lives itself (it is their reaper, as the worker is
its). What the worker finds among its own children with its mark in the environment, and that is none of the children
it started, belongs to a job that is over.
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

# What every process has that user code starts. Others of this process are not for us to end.
MARK = {"SERVO_WORKER_PROCESS": f"{os.getpid()}-{os.urandom(8).hex()}"}
# Children that this worker started and that live.
ours: set[int] = set()


def adopt() -> None:
    """From now on they come to this process rather than to the system's first one."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_soon(looks: int = _LOOKS_MAX, ended: frozenset[int] = frozenset()) -> None:
    """Ends them, and what comes to us when they end."""
    for pid in ended:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    children = _children()
    left = {pid for pid in children if pid in ended or (pid not in ours and _is_marked(pid))}
    for pid in left:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    if left and looks:
        asyncio.get_running_loop().call_later(_LOOK_AGAIN, end_soon, looks - 1, frozenset(left))


def _children() -> set[int]:
    found: set[int] = set()
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found.update(int(pid) for pid in (thread / "children").read_text().split())
    return found


def _is_marked(pid: int) -> bool:
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return all(f"{name}={value}".encode() in variables for name, value in MARK.items())
