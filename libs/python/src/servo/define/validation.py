"""Validation of arguments, with errors that name the argument and the remedy.

Mistakes would otherwise surface much later: a text is also a sequence, of its letters, and a wrong
number fails only when it is encoded.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence, Set
from typing import Any

from servo.errors import InvalidValue
from servo.model.text import excerpt

INT32 = (-(2**31), 2**31 - 1)
UINT32 = (0, 2**32 - 1)
UINT64 = (0, 2**64 - 1)


def one_or_more(given: Any) -> Any:
    """For labels and the like: a single text or class is accepted as a list of one."""
    return (given,) if isinstance(given, str | type) else given


def listed(field: str, given: object, kinds: type | tuple[type, ...], what: str) -> tuple[Any, ...]:
    """For parts of a definition: a single value is refused, and so are values of other kinds in the list."""
    if isinstance(given, str) or not isinstance(given, Sequence | Set):
        raise InvalidValue(f"{field} is {_one(given)}; write a list of {what}")
    for each in given:
        if not isinstance(each, kinds):
            raise InvalidValue(f"{field} holds {_one(each)}; write a list of {what}")
    return tuple(given)


def words(field: str, given: object) -> tuple[str, ...]:
    return listed(field, one_or_more(given), str, "texts")


def texts(field: str, given: object) -> dict[str, str]:
    """A mapping from names to texts."""
    if not isinstance(given, Mapping):
        raise InvalidValue(f"{field} is {_one(given)}; write a mapping from text to text")
    for name, value in given.items():
        if not isinstance(name, str):
            raise InvalidValue(f"{field} has the name {shown(name)}; write a text")
        if not isinstance(value, str):
            raise InvalidValue(f"{field}[{name!r}] is {shown(value)}; write a text")
    return dict(given)


def mapping(field: str, given: Any) -> Mapping[str, Any]:
    """None means an empty mapping."""
    if given is not None and not isinstance(given, Mapping):
        raise InvalidValue(f"{field} is {_one(given)}; write a mapping")
    return given or {}


def text(field: str, given: object) -> str:
    if not isinstance(given, str):
        raise InvalidValue(f"{field} is {shown(given)}; write a text{_or_nothing(given)}")
    return given


def flag(field: str, given: object) -> bool:
    if given not in (True, False):
        raise InvalidValue(f"{field} is {shown(given)}; write True or False")
    return bool(given)


def whole(field: str, given: Any, limits: tuple[int, int]) -> int:
    """Accepts everything with ``__index__``, such as numpy's integers."""
    low, high = limits
    try:
        number = operator.index(given)
    except TypeError:
        raise InvalidValue(f"{field} is {shown(given)}; write a whole number") from None
    if not low <= number <= high:
        raise InvalidValue(f"{field} is {shown(given)}; write a whole number from {low} to {high}")
    return number


def amount(field: str, given: Any) -> float:
    """A finite number that is not negative."""
    if not isinstance(given, int | float) or not 0 <= given < math.inf:
        raise InvalidValue(f"{field} is {shown(given)}; write a number such as 0.9")
    return given


def of_kind(field: str, given: object, kinds: Any, write: str) -> None:
    if not isinstance(given, kinds):
        raise InvalidValue(f"{field} is {shown(given)}; write {write}{_or_nothing(given)}")


def one_of(field: str, given: object, choices: Sequence[object]) -> None:
    """If ``None`` is one of the choices, the argument may be omitted."""
    if given not in choices:
        offers = " or ".join(f'"{each}"' for each in choices if each is not None)
        raise InvalidValue(f"{field} is {shown(given)}; write {offers}")


def shown(given: object) -> str:
    return excerpt(repr(given))


def _or_nothing(given: object) -> str:
    return ", or leave it out" if given is None else ""


def _one(given: object) -> str:
    """The kind only, because the value may be a misplaced secret."""
    if given is None:
        return "None"
    return f"one {'text' if isinstance(given, str) else type(given).__name__}"
