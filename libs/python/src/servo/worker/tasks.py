"""Concurrent loops that depend on each other."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def run_until_first_ends(*loops: Coroutine[Any, Any, None]) -> None:
    """Raises what the first one raised. The others are cancelled and have ended when this returns."""
    tasks = [asyncio.create_task(loop) for loop in loops]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
