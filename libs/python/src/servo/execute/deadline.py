"""Work with a time limit, in a process that continues afterwards."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

from servo.errors import ServoError

T = TypeVar("T")


class DeadlinePassed(ServoError):
    """The work took too long."""


def within(seconds: float, work: Callable[[], T], name: str) -> T:
    """Runs in a thread, because a thread that hangs can be abandoned. Raises what the work raises,
    or :class:`DeadlinePassed`.
    """
    made: list[T] = []
    raised: list[BaseException] = []

    def run_attempt() -> None:
        try:
            made.append(work())
        except BaseException as error:
            raised.append(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(run_attempt,), name=f"servo-{name}", daemon=True)
    thread.start()
    thread.join(seconds)
    if raised:
        raise raised[0]
    if not made:
        raise DeadlinePassed(f"took longer than {seconds:g} s")
    return made[0]
