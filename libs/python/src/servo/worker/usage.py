"""The resources that a job used, measured in the child. A warm child has run other jobs before."""

from __future__ import annotations

import contextlib
import resource
import time
from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
# Resets the kernel's peak of the resident size.
_FORGET_PEAK = "5"


class Meter:
    """Measures from its creation."""

    def __init__(self) -> None:
        # Without permission, the peak is that of the process.
        with contextlib.suppress(OSError):
            _CLEAR.write_text(_FORGET_PEAK)
        self._cpu, self._began = _cpu_seconds(), time.monotonic()

    def read(self) -> dict[str, int]:
        peak, milliseconds = _peak_bytes(), (time.monotonic() - self._began) * 1000
        return {
            "cpu_ms": round((_cpu_seconds() - self._cpu) * 1000),
            "memory_peak_bytes": peak,
            # An estimate; the worker replaces it by samples for longer jobs.
            "memory_mb_ms": round(peak / 1_000_000 * milliseconds),
        }


def _cpu_seconds() -> float:
    """Including the processes that it started and waited for."""
    own, started = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + started.ru_utime + started.ru_stime


def _peak_bytes() -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
