"""Why a call did not work out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from servo.errors import ServoError


@dataclass(frozen=True, slots=True)
class Violation:
    """A field and what is wrong with it."""

    field: str
    description: str


@dataclass(frozen=True, slots=True)
class Details:
    # The gRPC status by name, such as NOT_FOUND.
    code: str
    message: str
    # From the closed list of servo.v1.ErrorReason, such as RUN_NOT_FOUND; empty when the server gave none.
    reason: str = ""
    violations: Sequence[Violation] = ()
    # When to try again.
    retry_after: timedelta | None = None
    # More about the reason, such as the limit that was met.
    metadata: Mapping[str, str] = field(default_factory=dict)


class CallFailed(ServoError):
    """The root of everything that a call may raise."""

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
    """ALREADY_EXISTS, ABORTED or FAILED_PRECONDITION: what is there does not allow it."""


class NotAuthenticated(CallFailed):
    """UNAUTHENTICATED: no credentials, or none that count."""


class NotAllowed(CallFailed):
    """PERMISSION_DENIED."""


class Exhausted(CallFailed):
    """RESOURCE_EXHAUSTED: a limit is met; ``details.retry_after`` may say when to come back."""


class TimedOut(CallFailed):
    """DEADLINE_EXCEEDED: a mutation may have happened all the same; repeat it with its request id."""


class Unavailable(CallFailed):
    """UNAVAILABLE: there is no server, or it cannot serve just now."""


class NotImplementedByServer(CallFailed):
    """UNIMPLEMENTED: this server does not do that."""


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
