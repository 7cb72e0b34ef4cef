"""A worker that kills itself once, in the step that its environment names.

``python -m tests.worker.dying worker …``: ``STEP`` is the step and ``DIED`` a file that exists once
it has happened. User code implements the steps of the child.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from servo.cli.main import main
from servo.v1 import callback_pb2
from servo.worker.reports import Reports
from servo.worker.slots import Slots
from servo.worker.spool import Spool


def die() -> None:
    try:
        Path(os.environ["DIED"]).touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def dying_in(step: str) -> None:
    match step:
        case "before start":
            _wrap(Slots, "accept", before=True)
        case "before finish":
            _wrap(Reports, "send", before=True, when=_finishes)
        case "outcome kept":
            _wrap(Spool, "keep", before=False)
        case "after finish":
            _wrap(Reports, "_handle_answer", before=True, when=_is_answered)


def _finishes(*given: Any) -> bool:
    item: callback_pb2.CallbackItem = given[1]
    return item.HasField("finish")


def _is_answered(*given: Any) -> bool:
    answer: callback_pb2.CallbackResult = given[1]
    return answer.HasField("finish")


def _wrap(kind: type, name: str, *, before: bool, when: Callable[..., bool] = lambda *_: True) -> None:
    method = getattr(kind, name)

    @wraps(method)
    def wrapped(*given: Any, **named: Any) -> Any:
        if before and when(*given):
            die()
        answer = method(*given, **named)
        if not before:
            die()
        return answer

    setattr(kind, name, wrapped)


if __name__ == "__main__":
    dying_in(os.environ["STEP"])
    main()
