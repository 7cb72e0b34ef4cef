"""What Servo raises. Every message says what is wrong, where, and what to do about it."""

from __future__ import annotations


class ServoError(Exception):
    """The root of everything that this package raises on purpose."""


class InvalidValue(ServoError, ValueError):
    """A value that cannot be what it is meant to be: a key, an id, a partition."""
