"""Errors of storage."""

from __future__ import annotations

from servo.errors import ServoError


class BadFolder(ServoError):
    """A folder that this worker can neither read nor write."""


class AlreadyWritten(ServoError):
    """Another process of the same attempt has written here before."""


class StorageFailed(ServoError):
    """A failure of the disk or the network; a retry may succeed."""
