"""How a worker finds again what the code defines: a module, and a name at its top.

What has no such place cannot be found: a function inside another one, for instance, or one under a name that now means
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
    """An asset, a check, a sensor."""

    function: Callable[..., Any]


class EntryPoints:
    """``importable`` refuses what only this process has; a run without a server needs no such thing. ``places`` says
    where definitions stand that have other names than their functions."""

    def __init__(self, *, importable: bool, places: Mapping[int, Place] | None = None) -> None:
        self._importable, self._places = importable, places or {}

    def of_definition(self, definition: Defined) -> Place:
        """``total = asset(name="total")(add)`` is found as ``total``: ``add`` stays the plain function it is."""
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
        """Its name. ``needed`` are the methods it must have: store and load, unless said otherwise."""
        name = io_name(given)
        if self._importable and is_custom(name):
            try:
                found = custom(name, *needed)
            # Importing is running code of the user.
            except Exception as error:
                words = str(error) if isinstance(error, CannotStore) else f"io `{name}` cannot be imported: {error}"
                raise InvalidValue(f"{words}; it must stand at the top of a module that is deployed") from error
            if isinstance(given, type) and type(found) is not given:
                raise InvalidValue(f"io `{name}` means something else in the end; give the class a name of its own")
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
            f"`{name}` stands in the script that is being run, which a worker cannot import; move it to a module"
        )
    if not name.isidentifier():
        return InvalidValue(f"`{name}` is not at the top of its module, where a worker would look; move it there")
    return InvalidValue(
        f"`{module}.{name}` means something else in the end; keep what was decorated under a name of its own there"
    )
