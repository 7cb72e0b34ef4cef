"""What can go wrong where data lies."""

from __future__ import annotations

from servo.errors import ServoError


class BadFolder(ServoError):
    """A place that this worker can neither read nor write."""


class AlreadyWritten(ServoError):
    """Somebody was here before, in the name of the same attempt."""


class StorageFailed(ServoError):
    """The disk or the network did not do its part; another try may go better."""
