"""An asset's retry policy with defaults filled in, as in plans."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration

from servo.model.categories import Backoff, ErrorCategory
from servo.model.retry import RetryPolicy
from servo.v1 import manifest_pb2


def retry_policy(asset: manifest_pb2.AssetDefinition) -> RetryPolicy:
    usual, given = RetryPolicy(), asset.retry
    return RetryPolicy(
        backoff=Backoff(given.backoff) if given.backoff else usual.backoff,
        initial_delay_ms=_millis(given.initial_delay) if given.HasField("initial_delay") else usual.initial_delay_ms,
        max_attempts=given.max_attempts or usual.max_attempts,
        max_delay_ms=_millis(given.max_delay) if given.HasField("max_delay") else usual.max_delay_ms,
        retry_on=frozenset(map(ErrorCategory, given.retry_on_categories)) or usual.retry_on,
        retry_types=frozenset(given.retry_on_types),
        never_types=frozenset(given.never_on_types),
    )


def _millis(length: Duration) -> int:
    return length.seconds * 1000 + length.nanos // 1_000_000
