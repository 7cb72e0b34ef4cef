"""What the processes of one job have in memory together."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def resident_bytes(pid: int) -> int:
    """Of one process, now; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0


def exceeds_limit(pid: int, limit: int) -> int:
    """What a process and everything below it have, when that is more than the limit; else 0.

    Pages that several share would be counted several times by what is quick to know, so that is only asked first.
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
    """With its share of the pages that it shares."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
