"""Kinds of failures, and of delays between tries; the numbers are those of the proto's enums."""

from __future__ import annotations

from enum import IntEnum


class ErrorCategory(IntEnum):
    """Whose fault a failure is, which decides whether trying again can help."""

    TRANSIENT = 1
    INFRASTRUCTURE = 2
    TIMEOUT = 3
    USER_CODE = 4
    INPUT = 5
    CONFIGURATION = 6


class Backoff(IntEnum):
    """How the delay grows with the failures."""

    EXPONENTIAL = 1
    LINEAR = 2
    CONSTANT = 3
