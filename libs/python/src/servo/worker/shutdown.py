"""How a worker spends its grace period, after which it will be killed.

Most of the time is for attempts that may still finish. A part is reserved for ending the rest, and
a part for reporting to the server, because an attempt that is returned is retried elsewhere at
once, and one that falls silent much later.
"""

from __future__ import annotations

import asyncio

_REPORT_SHARE = 0.25
_ANSWERS_SECONDS_MAX = 10.0


class Shutdown:
    """``grace`` is the total time, ``kill_grace`` the time for user code after TERM."""

    def __init__(self, grace: float, kill_grace: float) -> None:
        self._grace = grace
        self.kill_seconds = min(kill_grace, grace * _REPORT_SHARE)
        self._answer_seconds = min(_ANSWERS_SECONDS_MAX, grace * _REPORT_SHARE)
        self._begun = asyncio.Event()
        self._ends = 0.0

    def begin(self) -> None:
        if not self._begun.is_set():
            self._ends = asyncio.get_running_loop().time() + self._grace
            self._begun.set()

    @property
    def begun(self) -> bool:
        return self._begun.is_set()

    async def wait(self) -> None:
        await self._begun.wait()

    @property
    def seconds_left(self) -> float:
        return max(self._ends - asyncio.get_running_loop().time(), 0.0)

    @property
    def seconds_to_finish(self) -> float:
        """The time in which attempts may finish."""
        return max(self.seconds_left - self.kill_seconds - self._answer_seconds, 0.0)

    @property
    def seconds_to_kill(self) -> float:
        """The time in which the others must have been ended."""
        return max(self.seconds_left - self._answer_seconds, 0.0)
