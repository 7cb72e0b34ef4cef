"""What users give where several things belong: taken as they mean it, or refused.

A text is a sequence as well, of its letters, so nothing would complain by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from servo.errors import InvalidValue
from servo.model.text import excerpt


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


def shown(given: object) -> str:
    return excerpt(repr(given))


def _one(given: object) -> str:
    """Without its value, which may be a secret in the wrong place."""
    if given is None:
        return "None"
    return f"one {'text' if isinstance(given, str) else type(given).__name__}"
