"""Entry points: the module and module-level name by which a worker finds a definition.

Some definitions have none, such as a function inside another one, or one whose name now refers to
something else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from servo.data.formats import CannotStore, custom
from servo.define.io import Io, io_name, is_custom
from servo.errors import InvalidValue

Place = tuple[str, str]


class Defined(Protocol):
    """An asset, a check or a sensor."""

    function: Callable[..., Any]


class EntryPoints:
    """``importable`` refuses definitions that exist in this process only; local runs accept them.
    ``places`` has the entry points of definitions whose names differ from their functions'.
    """

    def __init__(self, *, importable: bool, places: Mapping[int, Place] | None = None) -> None:
        self._importable, self._places = importable, places or {}

    def of_definition(self, definition: Defined) -> Place:
        """``total = asset(name="total")(add)`` is found as ``total``, because ``add`` remains the plain function."""
        place = _place(definition.function)
        if not self._importable or _found(place) is definition:
            return place
        if id(definition) in self._places:
            return self._places[id(definition)]
        raise _refusal(place)

    def of_function(self, function: Callable[..., Any]) -> Place:
        place = _place(function)
        found = _found(place) if self._importable else function
        if found is not function and getattr(found, "function", None) is not function:
            raise _refusal(place)
        return place

    @property
    def importable(self) -> bool:
        return self._importable

    def io(self, given: Io, *needed: str) -> str:
        """The io's name. ``needed`` are the methods that it must have, by default store and load."""
        name = io_name(given)
        if self._importable and is_custom(name):
            try:
                found = custom(name, *needed)
            # Importing executes user code.
            except Exception as error:
                words = str(error) if isinstance(error, CannotStore) else f"io `{name}` cannot be imported: {error}"
                raise InvalidValue(f"{words}; it must be a module-level name of a deployed module") from error
            if isinstance(given, type) and type(found) is not given:
                raise InvalidValue(
                    f"io `{name}` refers to something else at the end of the module; give the class its own name"
                )
        return name


def _place(function: Callable[..., Any]) -> Place:
    return function.__module__, function.__qualname__


def _found(place: Place) -> Any:
    module, name = place
    return None if module == "__main__" else getattr(sys.modules.get(module), name, None)


def _refusal(place: Place) -> InvalidValue:
    module, name = place
    if module == "__main__":
        return InvalidValue(
            f"`{name}` is defined in the script that is being run, which a worker cannot import; move it to a module"
        )
    if not name.isidentifier():
        return InvalidValue(f"`{name}` is not at the top of its module, where a worker would look; move it there")
    return InvalidValue(
        f"`{module}.{name}` refers to something else at the end of the module; give the decorated function its own name"
    )
