"""What a definition is made of: a function with a name of its own."""

from __future__ import annotations

from typing import Any

from servo.errors import InvalidValue

from .location import of_caller


def check_function(given: Any, decorator: str) -> None:
    """Refuses what has no name, a ``functools.partial`` for instance, before something odd happens to it."""
    if not callable(given) or not all(hasattr(given, name) for name in ("__name__", "__qualname__", "__module__")):
        kind = type(given).__name__
        raise InvalidValue(
            f"{of_caller()}: {decorator} takes a function, and this is a {kind}, which has no name; write a def that "
            "calls it"
        )
