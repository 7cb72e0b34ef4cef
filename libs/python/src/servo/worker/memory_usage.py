"""Memory over time of longer attempts, from samples."""

from __future__ import annotations

from servo.v1 import common_pb2


class MemoryOverTime:
    def __init__(self) -> None:
        self.peak_bytes = 0
        self._megabyte_ms = 0.0
        self._looked = 0.0
        self._looks = 0

    def look(self, resident_bytes: int, now: float) -> None:
        """``now`` is in seconds of a monotonic clock."""
        if self._looks:
            self._megabyte_ms += resident_bytes / 1_000_000 * (now - self._looked) * 1000
        self.peak_bytes = max(self.peak_bytes, resident_bytes)
        self._looked = now
        self._looks += 1

    def add_to(self, usage: common_pb2.Usage) -> None:
        """Replaces the estimate from the peak alone, once there are samples."""
        if self._looks > 1:
            usage.memory_mb_ms = round(self._megabyte_ms)
