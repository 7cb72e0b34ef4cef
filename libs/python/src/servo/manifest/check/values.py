"""Checks of single values that are used in many places."""

from __future__ import annotations

import json
import re
import unicodedata

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from servo.errors import InvalidValue
from servo.model.limits import CONFIG_BYTES_MAX
from servo.model.text import excerpt
from servo.model.zones import find_zone

from .context import Faults

# The limit for names of pools, checks, sets, schedules and the like.
NAME_BYTES_MAX = 128
# The limit for descriptions.
PROSE_BYTES_MAX = 16 * 1024
_CRON_FIELDS = 5
# Longer than any task takes; keeps sums of durations within their types.
_DURATION_SECONDS_MAX = 366 * 24 * 3600
_CRON_FIELD = re.compile(r"[A-Za-z0-9*/,\-?#]*")
_DIGEST = re.compile(r"[0-9a-f]{64}")


def name(faults: Faults, path: str, text: str) -> None:
    """A short text that is required."""
    if text:
        short(faults, path, text, NAME_BYTES_MAX)
    else:
        faults.add(path, "is empty; give it a name")


def short(faults: Faults, path: str, text: str, bytes_max: int) -> None:
    count = len(text.encode())
    if count > bytes_max:
        faults.add(path, f"has {count} bytes; at most {bytes_max} are allowed")
    elif any(unicodedata.category(c) == "Cc" and c not in "\t\n\x0b\x0c\r\x85" for c in text):
        faults.add(path, "holds a control character; remove it")


def duration(faults: Faults, path: str, holder: Message, *, zero_is_fine: bool = False) -> None:
    """Checks the field of ``holder`` that the path ends with: neither negative nor infinite, and
    zero only if allowed.
    """
    field = path.rpartition(".")[2]
    if not holder.HasField(field):
        return
    length = getattr(holder, field)
    assert isinstance(length, Duration)
    if not 0 <= length.seconds <= _DURATION_SECONDS_MAX or not 0 <= length.nanos <= 999_999_999:
        faults.add(path, "is negative or longer than a year; write a time between")
    elif length.seconds == 0 and length.nanos == 0 and not zero_is_fine:
        faults.add(path, "is zero; write a time or leave it out")


def digest(faults: Faults, path: str, text: str) -> None:
    if not _DIGEST.fullmatch(text):
        faults.add(path, f"`{excerpt(text)}` is not a sha256: write 64 lower-case hexadecimal digits")


def config(faults: Faults, path: str, text: str) -> None:
    """Any JSON, floats included, because user configuration is passed on unchanged."""
    count = len(text.encode())
    if count > CONFIG_BYTES_MAX:
        faults.add(path, f"has {count} bytes; at most {CONFIG_BYTES_MAX} are allowed")
    elif text:
        try:
            json.loads(text)
        except ValueError as error:
            faults.add(path, f"is no JSON: {error}")


def cron(faults: Faults, path: str, text: str) -> None:
    """Five fields of cron's characters; the automation service checks their meaning."""
    fields = text.split()
    known = all(_CRON_FIELD.fullmatch(field) for field in fields)
    if len(fields) != _CRON_FIELDS or not known or len(text.encode()) > NAME_BYTES_MAX:
        faults.add(
            path,
            "is not a cron expression of five fields: write minute, hour, day, month and weekday, such as `0 6 * * 1`",
        )


def zone(faults: Faults, path: str, text: str) -> None:
    try:
        find_zone(text)
    except InvalidValue as fault:
        faults.add(path, str(fault))


def listed(faults: Faults, path: str, holder: Message) -> None:
    """An enum with a known value."""
    field = holder.DESCRIPTOR.fields_by_name[path.rpartition(".")[2]]
    number = getattr(holder, field.name)
    if field.enum_type is None or number not in field.enum_type.values_by_number:
        faults.add(path, f"{number} is not in the list of this field")
