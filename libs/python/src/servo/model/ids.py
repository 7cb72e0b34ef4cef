"""Ids as texts: each is derived from what it identifies, or from a time and random bytes that the caller passes."""

from __future__ import annotations

import re
from typing import Literal

from servo.errors import InvalidValue

from .hashes import base32, crockford, from_crockford, head, hmac_sha256, sha256
from .limits import SECRET_BYTES_MIN, SLUG_BYTES_MAX
from .text import excerpt

_SLUG = re.compile(r"[a-z]([a-z0-9-]*[a-z0-9])?")
_DERIVED = re.compile(r"[a-z2-7]{26}")


def check_slug(kind: str, text: str) -> str:
    """The name of a tenant or a workspace: a DNS label."""
    if len(text) > SLUG_BYTES_MAX or not _SLUG.fullmatch(text):
        raise InvalidValue(
            f"`{excerpt(text)}` is not a {kind} name: write 1 to {SLUG_BYTES_MAX} lower-case letters, digits and "
            "`-`, beginning with a letter and not ending with `-`"
        )
    return text


def check_run_id(text: str) -> str:
    if not (text.startswith("run_") and _DERIVED.fullmatch(text[4:])):
        raise InvalidValue(f"`{excerpt(text)}` is not a run id: write `run_` and 26 characters of a-z and 2-7")
    return text


def run_id(secret: bytes, tenant: str, workspace: str, run_key: str) -> str:
    """The secret prevents others from computing the ids of runs that they may not know."""
    if len(secret) < SECRET_BYTES_MIN:
        raise InvalidValue(
            f"a secret of {len(secret)} bytes is too short; use at least {SECRET_BYTES_MIN} random bytes"
        )
    check_slug("tenant", tenant)
    check_slug("workspace", workspace)
    return f"run_{base32(hmac_sha256(secret, f'{tenant}:{workspace}:{run_key}')[:16])}"


def dispatch_id(run: str, task_key: str, attempt: int) -> str:
    """``attempt`` is the number of the task's dispatch, from 1."""
    return f"dispatch:{run}:{task_key}:{attempt}"


def attempt_id(dispatch: str) -> str:
    """Derived, so that everybody who knows the dispatch knows the attempt's id."""
    return crockford(sha256(dispatch)[:16])


def attempt_bytes(attempt: str) -> bytes:
    raw = from_crockford(attempt)
    if raw is None:
        raise InvalidValue(
            f"`{excerpt(attempt)}` is not an attempt id: write the 26 characters of a ULID in upper case"
        )
    return raw


def queue_id(prefix: Literal["d", "t"], internal_id: str) -> str:
    """The name of a dispatch (``d``) or a timer (``t``) in a queue."""
    return f"{prefix}_{head(internal_id)}"


def ulid(millis: int, random: bytes) -> str:
    """Sorts by time; ``random`` has 10 bytes."""
    return crockford((millis & 2**48 - 1).to_bytes(6) + random[:10].rjust(10, b"\0"))
