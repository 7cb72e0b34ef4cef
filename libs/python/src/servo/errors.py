"""Exceptions of Servo. Every message names the fault, its location and the remedy."""

from __future__ import annotations


class ServoError(Exception):
    """The base class of all exceptions that this package raises deliberately."""


class InvalidValue(ServoError, ValueError):
    """A malformed value, such as a key, an id or a partition."""
