"""Detects changed files of a project."""

from __future__ import annotations

from pathlib import Path

_LOOKED_AT = (".py", ".toml", ".txt", ".sql", ".yaml", ".yml", ".json", ".csv")
_LEFT_OUT = ("__pycache__", "node_modules")

Snapshot = dict[str, tuple[int, int]]


def snapshot(folder: Path) -> Snapshot:
    """Size and time of every file that can become part of a deployment."""
    found: Snapshot = {}
    waiting = [folder]
    while waiting:
        for path in waiting.pop().iterdir():
            if path.name.startswith(".") or path.name in _LEFT_OUT:
                continue
            if path.is_dir() and not path.is_symlink() and not (path / "pyvenv.cfg").exists():
                waiting.append(path)
            elif path.suffix in _LOOKED_AT:
                _note(path, found)
    return found


def _note(path: Path, found: Snapshot) -> None:
    try:
        status = path.stat()
    # Editors replace files, so one may be missing for a moment.
    except FileNotFoundError:
        return
    found[str(path)] = (status.st_mtime_ns, status.st_size)


def changed(before: Snapshot, now: Snapshot) -> list[str]:
    return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
