"""What users give: taken as they mean it, or refused with the argument's name and what to write instead.

Nothing would complain by itself where it is written: a text is a sequence as well, of its letters, and a wrong number
is found out by whoever sends it.
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
    """For words about something: one text or one class alone stands for a list of one."""
    return (given,) if isinstance(given, str | type) else given


def listed(field: str, given: object, kinds: type | tuple[type, ...], what: str) -> tuple[Any, ...]:
    """For parts of something: one alone is refused, and so is a list that holds anything else."""
    if isinstance(given, str) or not isinstance(given, Sequence | Set):
        raise InvalidValue(f"{field} is {_one(given)}; write a list of {what}")
    for each in given:
        if not isinstance(each, kinds):
            raise InvalidValue(f"{field} holds {_one(each)}; write a list of {what}")
    return tuple(given)


def words(field: str, given: object) -> tuple[str, ...]:
    return listed(field, one_or_more(given), str, "texts")


def texts(field: str, given: object) -> dict[str, str]:
    """A text for each of several names."""
    if not isinstance(given, Mapping):
        raise InvalidValue(f"{field} is {_one(given)}; write a mapping from text to text")
    for name, value in given.items():
        if not isinstance(name, str):
            raise InvalidValue(f"{field} has the name {shown(name)}; write a text")
        if not isinstance(value, str):
            raise InvalidValue(f"{field}[{name!r}] is {shown(value)}; write a text")
    return dict(given)


def mapping(field: str, given: Any) -> Mapping[str, Any]:
    """None is an empty one."""
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
    """What counts as an int does, numpy's for instance."""
    low, high = limits
    try:
        number = operator.index(given)
    except TypeError:
        raise InvalidValue(f"{field} is {shown(given)}; write a whole number") from None
    if not low <= number <= high:
        raise InvalidValue(f"{field} is {shown(given)}; write a whole number from {low} to {high}")
    return number


def amount(field: str, given: Any) -> float:
    """A number that is neither negative nor endless."""
    if not isinstance(given, int | float) or not 0 <= given < math.inf:
        raise InvalidValue(f"{field} is {shown(given)}; write a number such as 0.9")
    return given


def of_kind(field: str, given: object, kinds: Any, write: str) -> None:
    if not isinstance(given, kinds):
        raise InvalidValue(f"{field} is {shown(given)}; write {write}{_or_nothing(given)}")


def one_of(field: str, given: object, choices: Sequence[object]) -> None:
    """``None`` among the choices may be left out."""
    if given not in choices:
        offers = " or ".join(f'"{each}"' for each in choices if each is not None)
        raise InvalidValue(f"{field} is {shown(given)}; write {offers}")


def shown(given: object) -> str:
    return excerpt(repr(given))


def _or_nothing(given: object) -> str:
    return ", or leave it out" if given is None else ""


def _one(given: object) -> str:
    """Without its value, which may be a secret in the wrong place."""
    if given is None:
        return "None"
    return f"one {'text' if isinstance(given, str) else type(given).__name__}"
