"""Which files of a project are packaged."""

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
    """Sorted by their names in the archive; links are followed nowhere."""
    return sorted(_walk(source, source, (*_NEVER, *exclude)), key=lambda path: name_of(source, path))


def name_of(source: Path, path: Path) -> str:
    return path.relative_to(source).as_posix()


def _walk(source: Path, folder: Path, exclude: Sequence[str]) -> Iterator[Path]:
    for path in folder.iterdir():
        name = name_of(source, path)
        hidden = path.name.startswith(".") or path.is_symlink()
        if hidden or any(fnmatch(path.name, pattern) or fnmatch(name, pattern) for pattern in exclude):
            continue
        if path.is_dir():
            yield from _walk(source, path, exclude)
        elif path.is_file():
            yield path
