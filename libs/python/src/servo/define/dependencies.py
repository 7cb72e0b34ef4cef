"""What an asset reads, beyond the usual.

``deps={"orders": In("raw/orders", mapping={"day": Window(-6, 0)})}``: a mapping has a rule per dimension of the
upstream asset; a dimension without one follows the usual rules.
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
    """The same value as the downstream dimension; the one of the same name unless another is named."""

    downstream: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """The upstream periods that overlap the downstream one, moved and widened: ``Window(-6, 0)`` is a week of days."""

    start: int = 0
    end: int = 0
    downstream: str = ""

    def __post_init__(self) -> None:
        whole("start", self.start, INT32)
        whole("end", self.end, INT32)


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every value there is."""


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest values, this many."""

    count: int = 1

    def __post_init__(self) -> None:
        whole("count", self.count, UINT32)


@dataclass(frozen=True, slots=True)
class Table:
    """Downstream values to upstream values; one that is not listed reads nothing."""

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
# An asset, its key, or either with more to say about it.
Upstream = "str | Asset[..., Any] | Source | Output | In"


@dataclass(frozen=True, slots=True)
class In:
    """An upstream asset with more to say about how it is read."""

    asset: str | Asset[..., Any] | Source | Output
    mapping: Mapping[str, Rule] = field(default_factory=dict)
    # A missing version is no fault; the function gets None.
    optional: bool = False
    # The function runs once per item of the upstream.
    each: bool = False

    @property
    def key(self) -> str:
        return self.asset if isinstance(self.asset, str) else str(self.asset.key)


def mapped(asset: str | Asset[..., Any] | Source | Output) -> In:
    """``deps={"file": mapped(files)}``: once per item that ``files`` yields."""
    return In(asset, each=True)
