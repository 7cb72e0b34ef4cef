"""Categories of failures, and kinds of delays between retries; the numbers are those of the proto's enums."""

from __future__ import annotations

from enum import IntEnum


class ErrorCategory(IntEnum):
    """The cause of a failure, which decides whether a retry can help."""

    TRANSIENT = 1
    INFRASTRUCTURE = 2
    TIMEOUT = 3
    USER_CODE = 4
    INPUT = 5
    CONFIGURATION = 6


class Backoff(IntEnum):
    """How the delay grows with the number of failures."""

    EXPONENTIAL = 1
    LINEAR = 2
    CONSTANT = 3
