"""Selects the files of a project that are packaged, and explains why others are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

_NEVER = (
    "__pycache__",
    "*.pyc",
    "*.egg-info",
    "node_modules",
    "venv",
    "build",
    "dist",
    "tests",
    "test_*.py",
    "conftest.py",
)


def packaged(source: Path, exclude: Sequence[str]) -> list[Path]:
    """The packaged files, sorted by their names in the archive. Symbolic links are not followed."""
    return sorted(_walk(source, source, exclude), key=lambda path: name_of(source, path))


def name_of(source: Path, path: Path) -> str:
    return path.relative_to(source).as_posix()


def why_excluded(source: Path, file: Path, exclude: Sequence[str]) -> str:
    """The part of its path that keeps a file out of the archive, and the remedy."""
    inside = [path for path in (file, *file.parents) if path.is_relative_to(source) and path != source]
    reasons = (_reason(source, path, exclude) for path in reversed(inside))
    return next(filter(None, reasons), "it was not there when the build began; build again")


def _walk(source: Path, folder: Path, exclude: Sequence[str]) -> Iterator[Path]:
    for path in folder.iterdir():
        if _reason(source, path, exclude):
            continue
        if path.is_dir():
            yield from _walk(source, path, exclude)
        elif path.is_file():
            yield path


def _reason(source: Path, path: Path, exclude: Sequence[str]) -> str:
    """The reason why this part of the path is not packaged; empty if it is."""
    name = name_of(source, path)
    if path.is_symlink():
        return (
            f"{name} is a link, and links are not followed; put what it points to there, or install that as a package "
            "and name it in the requirements"
        )
    if path.name.startswith("."):
        return f"{name} is hidden; give it a name without the dot"
    for pattern in _NEVER:
        if _matches(pattern, path, name):
            return f"{name} is left out like everything called {pattern}; give it another name"
    for pattern in exclude:
        if _matches(pattern, path, name):
            return f"{name} is left out by {pattern!r} in project.exclude of servo.toml; take that away"
    return ""


def _matches(pattern: str, path: Path, name: str) -> bool:
    return fnmatch(path.name, pattern) or fnmatch(name, pattern)
