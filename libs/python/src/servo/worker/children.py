"""Warm children: one per slot and version of the code, replaced after a failure and after many jobs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import NamedTuple

from .child import Child

_JOBS_PER_CHILD_MAX = 1_000
# As a share of the limit, so that the next job does not fail because of memory that this one kept.
_MEMORY_LEFT_MAX = 0.5


class Kind(NamedTuple):
    """The key of interchangeable children."""

    folder: Path
    # The interpreter of the code's environment.
    python: str
    # The memory limit of a job; memory that a job leaves behind counts for the next.
    memory_bytes: int
    # Variables that the child's environment must not have. The environment of a running child
    # cannot be changed, so a child that has a variable which became a secret gets no more jobs and
    # is replaced when its slot is needed.
    without: frozenset[str] = frozenset()


class Children:
    def __init__(self, idle_max: int) -> None:
        self._idle_max = idle_max
        self._idle: list[tuple[Kind, Child]] = []
        self._ending: set[asyncio.Task[None]] = set()

    async def take(self, kind: Kind, *, fresh: bool) -> Child:
        while not fresh and (child := self._idle_one(kind)) is not None:
            if child.alive:
                return child
            # It died because of something that user code left behind.
            self._end_soon(child)
        return await Child.start(kind.folder, kind.python, kind.without)

    def give_back(self, kind: Kind, child: Child, *, fresh: bool) -> None:
        """Keeps a child that succeeded; the oldest idle one is ended to make space."""
        full = kind.memory_bytes and child.resident_bytes() > kind.memory_bytes * _MEMORY_LEFT_MAX
        if fresh or full or child.jobs >= _JOBS_PER_CHILD_MAX:
            self._end_soon(child)
            return
        self._idle.append((kind, child))
        if len(self._idle) > self._idle_max:
            _, oldest = self._idle.pop(0)
            self._end_soon(oldest)

    async def close(self) -> None:
        for _, child in self._idle:
            self._end_soon(child)
        self._idle.clear()
        await asyncio.gather(*self._ending)

    def _idle_one(self, kind: Kind) -> Child | None:
        for place, (known, child) in enumerate(self._idle):
            if known == kind:
                del self._idle[place]
                return child
        return None

    def _end_soon(self, child: Child) -> None:
        task = asyncio.create_task(child.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
