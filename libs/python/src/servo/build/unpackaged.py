"""Detects modules that a project imports but its archive lacks: they exist here and would be missing on a worker."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from servo.define.location import Location
from servo.manifest.faults import Fault

from .files import why_excluded
from .imports import imports


@dataclass(frozen=True, slots=True)
class Before:
    """The state of imports before the project was imported."""

    modules: frozenset[str]
    path: tuple[Path, ...]

    @classmethod
    def now(cls) -> Before:
        return cls(frozenset(sys.modules), tuple(map(Path, sys.path)))


def unpackaged(source: Path, files: Sequence[Path], exclude: Sequence[str], before: Before) -> list[Fault]:
    """A fault for every module of the project that was imported and is not among the packaged files."""
    known = set(files)
    missing = {name: file for name, file in imported(source, before) if file not in known}
    # Modules inside an unpackaged package are implied by it.
    reported = [name for name in sorted(missing) if name.rpartition(".")[0] not in missing]
    return [
        Fault(
            "modules",
            f"is imported but not packaged: {why_excluded(source, missing[name], exclude)}",
            name,
            _place(source, files, name),
        )
        for name in reported
    ]


def imported(source: Path, before: Before) -> Iterator[tuple[str, Path]]:
    """The project's modules that were imported, with their files."""
    # A virtual environment inside the project, or an installed part of it: the requirements cover
    # those.
    installed = [path for path in before.path if path != source and path.is_relative_to(source)]
    for name, module in list(sys.modules.items()):
        given = getattr(module, "__file__", None)
        if name in before.modules or not isinstance(given, str):
            continue
        file = Path(given)
        if file.is_relative_to(source) and not any(map(file.is_relative_to, installed)):
            yield name, file


def _place(source: Path, files: Sequence[Path], name: str) -> Location | None:
    """The first line that imports the module or something inside it."""
    for file in files:
        if file.suffix != ".py":
            continue
        try:
            lines = [each.line for each in imports(source, file) if f"{each.name}.".startswith(f"{name}.")]
        # The import itself reports the error.
        except (SyntaxError, ValueError):
            continue
        if lines:
            return Location(str(file), min(lines))
    return None
