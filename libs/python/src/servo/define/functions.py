"""Validation of the functions behind definitions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from servo.errors import InvalidValue

from .location import of_caller


def check_function(given: Any, decorator: str) -> None:
    """Refuses objects without a name, such as a ``functools.partial``, and coroutine or generator
    functions, which return before they have run.
    """
    if isinstance(given, str):
        raise InvalidValue(
            f"{of_caller()}: {decorator} takes a function, and this is a text; give options by their names: "
            f'{decorator}(name="…")'
        )
    if inspect.iscoroutinefunction(given) or inspect.isasyncgenfunction(given):
        raise InvalidValue(
            f"{of_caller()}: `{given.__name__}` is async and would never be awaited; write a def that calls it with "
            "asyncio.run"
        )
    if not callable(given) or not all(hasattr(given, name) for name in ("__name__", "__qualname__", "__module__")):
        kind = type(given).__name__
        raise InvalidValue(
            f"{of_caller()}: {decorator} takes a function, and this is a {kind}, which has no name; write a def that "
            "calls it"
        )


def refuse_yielding(function: Callable[..., Any], decorator: str, instead: str) -> None:
    if inspect.isgeneratorfunction(function):
        raise InvalidValue(f"{of_caller()}: {decorator} calls `{function.__name__}`, which yields; {instead}")


def check_known(decorator: str, given: Iterable[str], options: Iterable[str], *others: str) -> None:
    """``others`` are parameters of the decorator itself."""
    known = {*options, *others}
    for name in given:
        if name not in known:
            from servo.model.suggestions import did_you_mean

            hint = did_you_mean(name, known) or f"; there are {', '.join(sorted(known))}"
            raise InvalidValue(f"{of_caller()}: {decorator} has no option `{name}`{hint}")
