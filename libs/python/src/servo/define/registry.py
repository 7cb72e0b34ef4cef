"""Records definitions while they are created, so that those without a module-level name can be reported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_listeners: list[list[object]] = []


def note(definition: object) -> None:
    for heard in _listeners:
        heard.append(definition)


@contextmanager
def listening() -> Iterator[list[object]]:
    heard: list[object] = []
    _listeners.append(heard)
    try:
        yield heard
    finally:
        _listeners.remove(heard)
