"""What a run request asks for, reduced to what shapes the run."""

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
    """Two requests under one run key are the same request exactly when these are equal."""
    return sha256_hex(
        {
            "selection": sorted(set(selection)),
            "partitions": sorted(set(partitions)),
            "labels": dict(labels or {}),
            # Users may write floats there, which have no canonical form.
            "config_sha256": None if config is None else hashlib.sha256(config.encode()).hexdigest(),
        }
    )
