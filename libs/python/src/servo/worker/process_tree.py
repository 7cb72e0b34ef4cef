"""The memory of all processes of a job."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def resident_bytes(pid: int) -> int:
    """Of one process; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0


def exceeds_limit(pid: int, limit: int) -> int:
    """The memory of a process and its descendants, if that exceeds the limit; else 0.

    The quick figure counts shared pages several times, so it is only the first test.
    """
    tree = _tree(pid)
    if sum(map(resident_bytes, tree)) <= limit:
        return 0
    used = sum(map(_proportional_bytes, tree))
    return used if used > limit else 0


def _tree(pid: int) -> list[int]:
    found = [pid]
    for each in found:
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{each}/task").iterdir():
                found += map(int, (thread / "children").read_text().split())
    return found


def _proportional_bytes(pid: int) -> int:
    """Including a proportional part of shared pages."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
