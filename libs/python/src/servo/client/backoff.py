"""How often and after which pauses a call is retried. Time and chance are arguments."""

from __future__ import annotations

from dataclasses import dataclass

DEADLINE_SECONDS = 30.0
_TRIES_MAX = 5
_PAUSE_MIN = 0.05
_PAUSE_MAX = 2.0


@dataclass(frozen=True, slots=True)
class Backoff:
    # The time by which the whole call must end, on the caller's clock.
    deadline: float
    tries: int = 1

    def left(self, now: float) -> float:
        return max(self.deadline - now, 0.0)

    def pause(self, now: float, chance: float) -> float | None:
        """Seconds until the next try, or ``None`` when there is none. ``chance`` is between 0 and 1."""
        full = min(_PAUSE_MIN * 2 ** (self.tries - 1), _PAUSE_MAX)
        pause = full * (0.5 + chance / 2)
        return None if self.tries >= _TRIES_MAX or self.left(now) <= pause else pause

    def again(self) -> Backoff:
        return Backoff(self.deadline, self.tries + 1)
