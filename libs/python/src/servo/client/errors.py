"""Exceptions of failed calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from servo.errors import ServoError


@dataclass(frozen=True, slots=True)
class Violation:
    """A field and its fault."""

    field: str
    description: str


@dataclass(frozen=True, slots=True)
class Details:
    # The gRPC status by name, such as NOT_FOUND.
    code: str
    message: str
    # From the closed list of servo.v1.ErrorReason, such as RUN_NOT_FOUND; empty if the server gave
    # none.
    reason: str = ""
    violations: Sequence[Violation] = ()
    # When to retry.
    retry_after: timedelta | None = None
    # More about the reason, such as the limit that was reached.
    metadata: Mapping[str, str] = field(default_factory=dict)


class CallFailed(ServoError):
    """The base class of everything that a call raises."""

    def __init__(self, details: Details) -> None:
        self.details = details
        lines = [details.message, *(f"  {each.field}: {each.description}" for each in details.violations)]
        super().__init__("\n".join(lines) if len(lines) > 2 else details.message)

    @property
    def reason(self) -> str:
        return self.details.reason

    @property
    def code(self) -> str:
        return self.details.code

    @property
    def violations(self) -> Sequence[Violation]:
        return self.details.violations


class InvalidRequest(CallFailed):
    """INVALID_ARGUMENT or OUT_OF_RANGE: the request itself is wrong; ``violations`` says where."""


class NotFound(CallFailed):
    """NOT_FOUND."""


class Conflict(CallFailed):
    """ALREADY_EXISTS, ABORTED or FAILED_PRECONDITION: the current state does not allow it."""


class NotAuthenticated(CallFailed):
    """UNAUTHENTICATED: no credentials, or invalid ones."""


class NotAllowed(CallFailed):
    """PERMISSION_DENIED."""


class Exhausted(CallFailed):
    """RESOURCE_EXHAUSTED: a limit is reached; ``details.retry_after`` may say when to retry."""


class TimedOut(CallFailed):
    """DEADLINE_EXCEEDED: a mutation may have happened anyway; repeat it with its request id."""


class Unavailable(CallFailed):
    """UNAVAILABLE: the server is unreachable or not ready."""


class NotImplementedByServer(CallFailed):
    """UNIMPLEMENTED: this server does not support the call."""


_CLASSES: Mapping[str, type[CallFailed]] = {
    "INVALID_ARGUMENT": InvalidRequest,
    "OUT_OF_RANGE": InvalidRequest,
    "NOT_FOUND": NotFound,
    "ALREADY_EXISTS": Conflict,
    "ABORTED": Conflict,
    "FAILED_PRECONDITION": Conflict,
    "UNAUTHENTICATED": NotAuthenticated,
    "PERMISSION_DENIED": NotAllowed,
    "RESOURCE_EXHAUSTED": Exhausted,
    "DEADLINE_EXCEEDED": TimedOut,
    "UNAVAILABLE": Unavailable,
    "UNIMPLEMENTED": NotImplementedByServer,
}


def failure(details: Details) -> CallFailed:
    return _CLASSES.get(details.code, CallFailed)(details)
