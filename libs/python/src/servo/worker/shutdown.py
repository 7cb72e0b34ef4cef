"""How a worker spends the time that it has for leaving: whoever told it to will end it by force afterwards.

Most of it belongs to attempts that may still end by themselves. A part is kept for ending the rest, and a part for
telling the server: an attempt that is given back is tried elsewhere at once, one that falls silent much later.
"""

from __future__ import annotations

import asyncio

_REPORT_SHARE = 0.25
_ANSWERS_SECONDS_MAX = 10.0


class Shutdown:
    """``grace`` is all the time there is, ``kill_grace`` what user code may have after TERM."""

    def __init__(self, grace: float, kill_grace: float) -> None:
        self._grace = grace
        self.kill_seconds = min(kill_grace, grace * _REPORT_SHARE)
        self._answer_seconds = min(_ANSWERS_SECONDS_MAX, grace * _REPORT_SHARE)
        self._told = asyncio.Event()
        self._ends = 0.0

    def begin(self) -> None:
        if not self._told.is_set():
            self._ends = asyncio.get_running_loop().time() + self._grace
            self._told.set()

    @property
    def begun(self) -> bool:
        return self._told.is_set()

    async def wait(self) -> None:
        await self._told.wait()

    @property
    def seconds_left(self) -> float:
        return max(self._ends - asyncio.get_running_loop().time(), 0.0)

    @property
    def seconds_to_finish(self) -> float:
        """In which attempts may end by themselves."""
        return max(self.seconds_left - self.kill_seconds - self._answer_seconds, 0.0)

    @property
    def seconds_to_kill(self) -> float:
        """In which the rest must have ended."""
        return max(self.seconds_left - self._answer_seconds, 0.0)
