"""The key of a run. The same key finds the same run."""

from __future__ import annotations

from servo.errors import InvalidValue

from .limits import RUN_KEY_BYTES_MAX
from .text import excerpt

# Prefixes that are reserved for Servo.
_RESERVED = ("manual:", "sched:", "sensor:", "backfill:")


def check_chosen(text: str) -> str:
    """Checks a key that a user chose. Prefixes of Servo's own runs are refused, because a user's
    run could otherwise take their keys.
    """
    for prefix in _RESERVED:
        if text.startswith(prefix):
            raise InvalidValue(
                f"the run key `{excerpt(text)}` begins with `{prefix}`, which is kept for runs that Servo starts; "
                "choose another"
            )
    return _check(text)


def manual(request_id: str) -> str:
    """A run without a key gets one from its request id."""
    return _check(f"manual:{request_id}")


def generation(key: str, number: int) -> str:
    """The key of a repeat; generation 1 is the key itself."""
    return key if number <= 1 else f"{key}#{number}"


def _check(text: str) -> str:
    if not text:
        raise InvalidValue("a run key must not be empty; leave it out to have one made from the request")
    if (count := len(text.encode())) > RUN_KEY_BYTES_MAX:
        raise InvalidValue(f"a run key has at most {RUN_KEY_BYTES_MAX} bytes, this one has {count}; use a hash of it")
    wrong = next((c for c in text if c == "#" or ord(c) < 32 or 127 <= ord(c) < 160), None)
    if wrong is not None:
        raise InvalidValue(f"the run key `{excerpt(text)}` holds {wrong!r}; control characters and `#` are refused")
    return text
