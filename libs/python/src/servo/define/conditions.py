"""Conditions under which an asset is materialized automatically, joined by ``&``, ``|`` and ``~``.

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
    """A time of the cron expression has passed since the newest version."""

    cron: str
    zone: str = ""


# Never materialized.
missing = Is("missing")
# The newest attempt failed.
failed = Is("failed")
# A dependency's partition has a newer version.
upstream_updated = Is("upstream_updated")
# All partitions of the dependencies exist and are up to date.
upstream_ready = Is("upstream_ready")
# The asset's code version changed since the newest version.
code_changed = Is("code_changed")
# Older than its freshness policy allows.
too_old = Is("too_old")
