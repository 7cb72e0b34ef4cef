"""When an asset is materialised without being asked: conditions, joined by ``&``, ``|`` and ``~``.

``automation=conditions.upstream_updated & conditions.upstream_ready``
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Fact = Literal["missing", "failed", "upstream_updated", "upstream_ready", "code_changed", "too_old"]


class Condition:
    def __and__(self, other: Condition) -> Condition:
        return AllOf((self, other))

    def __or__(self, other: Condition) -> Condition:
        return AnyOf((self, other))

    def __invert__(self) -> Condition:
        return Not(self)


@dataclass(frozen=True, slots=True)
class Is(Condition):
    fact: Fact


@dataclass(frozen=True, slots=True)
class AllOf(Condition):
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf(Condition):
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not(Condition):
    condition: Condition


@dataclass(frozen=True, slots=True)
class Cron(Condition):
    """A time of the cron passed since the newest version."""

    cron: str
    zone: str = ""


# Never materialised.
missing = Is("missing")
# The newest attempt failed.
failed = Is("failed")
# An upstream partition got a new version since.
upstream_updated = Is("upstream_updated")
# Every upstream partition exists and is itself up to date.
upstream_ready = Is("upstream_ready")
# The asset's code version changed since.
code_changed = Is("code_changed")
# Older than its freshness policy allows.
too_old = Is("too_old")
