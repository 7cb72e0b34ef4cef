"""Results of a function other than its value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, NoReturn, TypeVar

from servo.errors import InvalidValue

T = TypeVar("T")


class Skip(Exception):
    """Raised or returned by an asset's function when there is nothing to do. Readers of the asset
    are skipped as well.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


def skip(reason: str = "") -> NoReturn:
    """``servo.skip("no new files")`` ends the calling function."""
    raise Skip(reason)


class Retriable(Exception):
    """Raised by user code when a retry may succeed, regardless of the retry policy for the error's type."""


class Fatal(Exception):
    """Raised by user code when no retry can succeed."""


@dataclass(frozen=True, slots=True)
class Items(Generic[T]):
    """Items over which a mapped downstream asset runs, once each; ``value`` is stored as the asset's value."""

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
    """The result of a check function; a bool is enough if there is nothing to add."""

    passed: bool
    message: str = ""
    actual: str = ""
    expected: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
