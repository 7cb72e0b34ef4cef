"""Processes that user code started in groups of their own: they come to the worker when their child ends.

A child has what it started, however far down, for as long as it lives itself (it is their reaper, as the worker is
its); so what the worker finds among its own children without having started it belongs to a job that is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_LOOKS_MAX = 50
_LOOK_AGAIN = 0.1

# Processes that this worker started itself.
ours: set[int] = set()
# How many are being started whose numbers are not known yet.
_starting = 0


def adopt() -> None:
    """From now on they come to this process rather than to the system's first one."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_soon(looks: int = _LOOKS_MAX) -> None:
    """Ends them, and what comes to us when they end."""
    found = [pid for pid in _children() if pid not in ours]
    if found and _starting:
        asyncio.get_running_loop().call_later(_LOOK_AGAIN, end_soon, looks)
        return
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    if found and looks:
        asyncio.get_running_loop().call_later(_LOOK_AGAIN, end_soon, looks - 1)


@contextlib.contextmanager
def not_these() -> Iterator[None]:
    """While it lasts a process is started, or one that was has its number noted in ``ours``."""
    global _starting
    _starting += 1
    try:
        yield
    finally:
        _starting -= 1


def _children() -> list[int]:
    found: list[int] = []
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.extend(int(pid) for pid in (thread / "children").read_text().split())
    return found
