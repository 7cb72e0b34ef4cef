"""Verifies envelopes and recognizes repeated ones."""

from __future__ import annotations

import hmac
from collections import OrderedDict

from google.protobuf.message import DecodeError

from servo.v1 import worker_pb2

# Attempts to remember, so that a repeated envelope is not run again.
_REMEMBERED_MAX = 65_536


def open_envelope(key: bytes, signed: worker_pb2.SignedEnvelope) -> worker_pb2.TaskEnvelope | None:
    """``None`` if it was not signed for this worker, or cannot be decoded."""
    if not hmac.compare_digest(hmac.digest(key, signed.envelope, "sha256"), signed.signature):
        return None
    try:
        return worker_pb2.TaskEnvelope.FromString(signed.envelope)
    except DecodeError:
        return None


class SeenAttempts:
    """The most recent attempts."""

    def __init__(self) -> None:
        self._attempts: OrderedDict[str, None] = OrderedDict()

    def is_new(self, attempt_id: str) -> bool:
        if attempt_id in self._attempts:
            return False
        self._attempts[attempt_id] = None
        if len(self._attempts) > _REMEMBERED_MAX:
            self._attempts.popitem(last=False)
        return True
