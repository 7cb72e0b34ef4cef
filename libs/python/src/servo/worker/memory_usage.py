"""Memory over time of attempts that last, from looks now and then."""

from __future__ import annotations

from servo.v1 import common_pb2


class MemoryOverTime:
    def __init__(self) -> None:
        self.peak_bytes = 0
        self._megabyte_ms = 0.0
        self._looked = 0.0
        self._looks = 0

    def look(self, resident_bytes: int, now: float) -> None:
        """``now`` in seconds of any clock that only goes forward."""
        if self._looks:
            self._megabyte_ms += resident_bytes / 1_000_000 * (now - self._looked) * 1000
        self.peak_bytes = max(self.peak_bytes, resident_bytes)
        self._looked = now
        self._looks += 1

    def add_to(self, usage: common_pb2.Usage) -> None:
        """In place of what was told by the peak alone, once there is something better."""
        if self._looks > 1:
            usage.memory_mb_ms = round(self._megabyte_ms)
