"""Records definitions while they are created, so that those without a module-level name can be reported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_listeners: list[list[object]] = []


def record(definition: object) -> None:
    for recorded in _listeners:
        recorded.append(definition)


@contextmanager
def recording() -> Iterator[list[object]]:
    recorded: list[object] = []
    _listeners.append(recorded)
    try:
        yield recorded
    finally:
        _listeners.remove(recorded)
