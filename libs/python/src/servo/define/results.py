"""What a function may answer besides its value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, NoReturn, TypeVar

from servo.errors import InvalidValue

T = TypeVar("T")


class Skip(Exception):
    """Raised or answered by an asset's function: there is nothing to do. What depends on it is skipped as well."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


def skip(reason: str = "") -> NoReturn:
    """``servo.skip("no new files")`` ends the function that calls it."""
    raise Skip(reason)


class Retriable(Exception):
    """Raised by user code that knows a later try may work, whatever the retry policy says about the error's type."""


class Fatal(Exception):
    """Raised by user code that knows no later try can work."""


@dataclass(frozen=True, slots=True)
class Items(Generic[T]):
    """Items over which a mapped downstream asset runs, once each; ``value`` is what is stored besides."""

    items: tuple[T, ...]
    value: object = None

    def __init__(self, items: Iterable[T], value: object = None) -> None:
        if isinstance(items, str):
            raise InvalidValue("items is one text; write a list of items")
        object.__setattr__(self, "items", tuple(items))
        object.__setattr__(self, "value", value)

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """What a check function found; a bool does when there is nothing more to say."""

    passed: bool
    message: str = ""
    actual: str = ""
    expected: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
