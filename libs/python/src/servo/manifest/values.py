"""Small values as proto messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from google.protobuf.duration_pb2 import Duration

from servo.define import durations
from servo.define.settings import Secret
from servo.define.validation import shown
from servo.errors import InvalidValue
from servo.v1 import common_pb2


def duration(given: durations.Duration | None, field: str = "") -> Duration | None:
    if given is None:
        return None
    length = durations.read_duration(given, field)
    micros = length // timedelta(microseconds=1)
    # Seconds and nanoseconds have the same sign.
    seconds, rest = divmod(abs(micros), 1_000_000)
    sign = -1 if micros < 0 else 1
    return Duration(seconds=sign * seconds, nanos=sign * rest * 1000)


def config_json(config: Mapping[str, Any]) -> str:
    """User configuration as text; equal configuration has equal text."""
    if not isinstance(config, Mapping):
        raise InvalidValue(f"config is {shown(config)}; write a mapping, or leave it out")
    if not config:
        return ""
    try:
        return json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidValue(f"config is not JSON: {error}; use texts, numbers, bools, lists and mappings") from None


def secret(given: Secret) -> common_pb2.SecretRef:
    # Without the value, which may be the secret itself.
    if not isinstance(given, Secret):
        raise InvalidValue(f'a secret is a value of type {type(given).__name__}; write Secret.env("NAME")')
    return common_pb2.SecretRef(name=given.name, provider=given.provider, path=given.path, version=given.version)
