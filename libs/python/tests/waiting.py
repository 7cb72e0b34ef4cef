"""Waiting for a condition, always with a deadline and a message that says what did not happen."""

from __future__ import annotations

import asyncio
import subprocess
import threading
import time
from collections.abc import Callable

# Far longer than anything here takes on a busy machine with two cores.
DEADLINE_SECONDS = 60.0
_INTERVAL_SECONDS = 0.01


def wait_until(condition: Callable[[], object], what: str, seconds: float = DEADLINE_SECONDS) -> None:
    """Polls until the condition is true; fails with ``what`` after ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        _check(deadline, what, seconds)
        time.sleep(_INTERVAL_SECONDS)


async def wait_until_async(condition: Callable[[], object], what: str, seconds: float = DEADLINE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        _check(deadline, what, seconds)
        await asyncio.sleep(_INTERVAL_SECONDS)


def read_until(process: subprocess.Popen[str], text: str, seconds: float = DEADLINE_SECONDS) -> list[str]:
    """The lines that a process prints up to the first with ``text``; kills the process after ``seconds``."""
    assert process.stdout
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    lines: list[str] = []
    try:
        for line in process.stdout:
            lines.append(line)
            if text in line:
                return lines
    finally:
        timer.cancel()
    raise AssertionError(f"`{text}` was not printed within {seconds:.0f} s: {''.join(lines)}")


def _check(deadline: float, what: str, seconds: float) -> None:
    if time.monotonic() > deadline:
        raise AssertionError(f"waited {seconds:.0f} s until {what}")
