"""Faults of a project, reported together, each with its location in the user's code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from servo.define.location import Location
from servo.errors import ServoError


@dataclass(frozen=True, slots=True)
class Fault:
    # The field of the manifest, as in the planner's errors.
    path: str
    sentence: str
    # The definition's key or name, and its location.
    subject: str = ""
    location: Location | None = None

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        return f"{where}{self.subject or self.path}: {_field(self)}{self.sentence}"


class ManifestInvalid(ServoError):
    """The definitions have faults, so that there is no manifest."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(map(str, self.faults)))


def _field(fault: Fault) -> str:
    """The path without the definition's index in the manifest, which means nothing to its author."""
    _, dot, field = fault.path.partition("].")
    return f"{field} " if dot and fault.subject else ""
