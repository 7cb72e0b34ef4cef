"""The fingerprint of a run request: the fields that shape the run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from .canonical import sha256_hex


def fingerprint(
    selection: Iterable[str],
    partitions: Iterable[str] = (),
    labels: Mapping[str, str] | None = None,
    config: str | None = None,
) -> str:
    """Two requests under one run key are the same request exactly if their fingerprints are equal."""
    return sha256_hex(
        {
            "selection": sorted(set(selection)),
            "partitions": sorted(set(partitions)),
            "labels": dict(labels or {}),
            # Hashed as text, because user configuration may contain floats, which have no canonical
            # form.
            "config_sha256": None if config is None else hashlib.sha256(config.encode()).hexdigest(),
        }
    )
