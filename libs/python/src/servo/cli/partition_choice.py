"""Parses partitions as users type them.

``day=2026-01-31``, ``day=2026-01-01..2026-01-31``, ``latest``, ``latest:7``, ``all``, or canonical
keys such as ``day=d:2026-01-31``; several dimensions are joined by commas.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from servo.errors import InvalidValue

if TYPE_CHECKING:
    from servo.define.run import PartitionChoice, Slice

HELP = "day=2026-01-31, day=2026-01-01..2026-01-31, latest, latest:7, all, or a canonical key; may be repeated."
_CANONICAL = re.compile(r"[a-z_][a-z0-9_]*=[sibdt]:.*")
_REMEDY = "write dimension=value, dimension=first..last, latest, latest:COUNT or all"


def partition_choice(given: list[str]) -> PartitionChoice | None:
    from servo.define.run import AllPartitions, Keys, LatestPartitions, Slices

    if not given:
        return None
    if len(given) == 1 and given[0] == "all":
        return AllPartitions()
    newest = re.fullmatch(r"latest(?::([1-9][0-9]*))?", given[0])
    if len(given) == 1 and newest:
        return LatestPartitions(int(newest[1] or 1))
    if all(_CANONICAL.fullmatch(each) for each in given):
        return Keys(tuple(given))
    slices: dict[str, Slice] = {}
    for part in ",".join(given).split(","):
        name, value = _pair(part)
        slices[name] = _joined(name, slices.get(name), value)
    return Slices(slices)


def _pair(part: str) -> tuple[str, str]:
    name, equals, value = part.partition("=")
    if not (name and equals and value) or _CANONICAL.fullmatch(part):
        raise InvalidValue(f"--partition `{part}` is not understood: {_REMEDY}")
    return name, value


def _joined(name: str, before: Slice | None, value: str) -> Slice:
    """Values of one dimension accumulate; a range cannot be combined."""
    from servo.define.run import Slice

    start, dots, end = value.partition("..")
    if dots and before:
        raise InvalidValue(f"--partition names `{name}` twice, and once as a range: give either values or one range")
    if dots:
        return Slice(start=start, end=end)
    if before and not before.values:
        raise InvalidValue(f"--partition names `{name}` twice, and once as a range: give either values or one range")
    return Slice(values=(*(before.values if before else ()), value))
