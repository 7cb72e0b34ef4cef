"""How a worker finds a function again: its module and its name there.

A function inside another one, a lambda or one under a name that now means something else cannot be found.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from servo.errors import InvalidValue


class EntryPoints:
    """``importable`` refuses what only this process has; a run without a server needs no such thing."""

    def __init__(self, *, importable: bool) -> None:
        self._importable = importable

    def of(self, function: Callable[..., Any]) -> tuple[str, str]:
        module, name = function.__module__, function.__qualname__
        if self._importable:
            _check(function, module, name)
        return module, name


def _check(function: Callable[..., Any], module: str, name: str) -> None:
    if module == "__main__":
        raise InvalidValue(
            f"`{name}` stands in the script that is being run, which a worker cannot import; move it to a module"
        )
    if not name.isidentifier():
        raise InvalidValue(f"`{name}` is not at the top of its module, where a worker would look; move it there")
    found = getattr(sys.modules.get(module), name, None)
    if found is not function and getattr(found, "function", None) is not function:
        raise InvalidValue(f"`{module}.{name}` means something else in the end; give the function a name of its own")
