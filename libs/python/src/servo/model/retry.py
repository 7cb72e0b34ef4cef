"""When a failed attempt is retried, and after which delay.

Delays are whole milliseconds, and the jitter is derived from the attempt's id, so that every
implementation computes the same due time.
"""

from __future__ import annotations

from dataclasses import dataclass

from .categories import Backoff, ErrorCategory
from .ids import attempt_bytes
from .limits import UINT64_MAX

RETRIED_BY_DEFAULT = frozenset({ErrorCategory.TRANSIENT, ErrorCategory.INFRASTRUCTURE, ErrorCategory.TIMEOUT})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    backoff: Backoff = Backoff.EXPONENTIAL
    initial_delay_ms: int = 60_000
    # Failures until the task fails. Interruptions do not count.
    max_attempts: int = 3
    max_delay_ms: int = 3_600_000
    retry_on: frozenset[ErrorCategory] = RETRIED_BY_DEFAULT
    # Error types that are always retried, and those that never are.
    retry_types: frozenset[str] = frozenset()
    never_types: frozenset[str] = frozenset()

    def after_failure(
        self,
        failures: int,
        category: ErrorCategory,
        attempt: str,
        error_type: str = "",
        retriable: bool | None = None,
    ) -> int | None:
        """Milliseconds to wait after this failure, the ``failures``-th of the task, or ``None`` if
        the task has failed.
        """
        if error_type in self.never_types or retriable is False or failures >= self.max_attempts:
            return None
        wanted = error_type in self.retry_types or retriable is True or category in self.retry_on
        return self.delay_ms(failures, attempt) if wanted else None

    def delay_ms(self, failures: int, attempt: str) -> int:
        """Between half and all of the full delay, so that tasks that failed at the same time are
        not retried at the same time.
        """
        full = self.full_delay_ms(failures)
        share = int.from_bytes(attempt_bytes(attempt)[:8])
        return full - full // 2 + ((full // 2) * share >> 64)

    def full_delay_ms(self, failures: int) -> int:
        """The delay before jitter. It never decreases with more failures."""
        earlier = max(failures - 1, 0)
        match self.backoff:
            case Backoff.EXPONENTIAL:
                factor = 1 << earlier if earlier < 64 else UINT64_MAX
            case Backoff.LINEAR:
                factor = earlier + 1
            case Backoff.CONSTANT:
                factor = 1
        return min(self.initial_delay_ms * factor, UINT64_MAX, self.max_delay_ms)
