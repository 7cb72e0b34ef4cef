"""Everything that is wrong with a project, told at once, each fault with the place in the user's code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from servo.define.location import Location
from servo.errors import ServoError


@dataclass(frozen=True, slots=True)
class Fault:
    # The field of the manifest, as the planner would name it.
    path: str
    sentence: str
    # The definition's key or name, and where it stands.
    subject: str = ""
    location: Location | None = None

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        return f"{where}{self.subject or self.path}: {_field(self)}{self.sentence}"


class ManifestInvalid(ServoError):
    """Definitions of which no manifest can be made."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(map(str, self.faults)))


def _field(fault: Fault) -> str:
    """The path without the definition's place in the manifest, which means nothing to its author."""
    _, dot, field = fault.path.partition("].")
    return f"{field} " if dot and fault.subject else ""
