"""Dependencies with settings.

``deps={"orders": In("raw/orders", mapping={"day": Window(-6, 0)})}``: a mapping has a rule per
dimension of the dependency; dimensions without a rule follow the default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from servo.model.partition_value import Value, plain_text

from .validation import INT32, UINT32, whole

if TYPE_CHECKING:
    from .asset import Asset, Output, Source


@dataclass(frozen=True, slots=True)
class Identity:
    """The same value as the downstream dimension, by default the one of the same name."""

    downstream: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """The upstream periods that overlap the downstream one, shifted and widened: ``Window(-6, 0)``
    is a week of days.
    """

    start: int = 0
    end: int = 0
    downstream: str = ""

    def __post_init__(self) -> None:
        whole("start", self.start, INT32)
        whole("end", self.end, INT32)


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every existing value."""


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest ``count`` values."""

    count: int = 1

    def __post_init__(self) -> None:
        whole("count", self.count, UINT32)


@dataclass(frozen=True, slots=True)
class Table:
    """Downstream values to upstream values; a value that is not listed reads nothing."""

    entries: Mapping[Value, Value | Sequence[Value]]
    downstream: str = ""

    @property
    def lines(self) -> list[tuple[str, list[str]]]:
        return [
            (plain_text(reader), [plain_text(each) for each in _several(read)]) for reader, read in self.entries.items()
        ]


def _several(read: Value | Sequence[Value]) -> Sequence[Value]:
    return (read,) if isinstance(read, Value) else read


Rule = Identity | Window | AllOf | Latest | Table
# An asset, its key, or either wrapped in In.
Upstream = "str | Asset[..., Any] | Source | Output | In"


@dataclass(frozen=True, slots=True)
class In:
    """A dependency with settings."""

    asset: str | Asset[..., Any] | Source | Output
    mapping: Mapping[str, Rule] = field(default_factory=dict)
    # A missing version is allowed; the function gets None.
    optional: bool = False
    # The function runs once per item of the dependency.
    each: bool = False

    @property
    def key(self) -> str:
        return self.asset if isinstance(self.asset, str) else str(self.asset.key)


def mapped(asset: str | Asset[..., Any] | Source | Output) -> In:
    """``deps={"file": mapped(files)}``: runs once per item that ``files`` yields."""
    return In(asset, each=True)
