"""What a function gets to know about its attempt, when it has a parameter named ``context``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from servo.model.partition_key import PartitionKey

# What a worker shows with level and fields; `log.info("read", extra={"rows": 3})`.
LOGGER = "servo.task"


@dataclass(frozen=True, slots=True)
class Context:
    """Made by hand in a test: ``clean(orders, context=Context(partition=PartitionKey(day=date(2026, 1, 31))))``."""

    asset_key: str = ""
    partition: PartitionKey | None = None
    run_id: str = ""
    attempt_id: str = ""
    # Counts the attempts of the task, from 1.
    attempt: int = 1
    # Stays the same over all attempts of a task: what an outside system may recognise a repeat by.
    idempotency_key: str = ""
    # Grows with every attempt: what an outside system may refuse a stale writer by.
    fencing_token: int = 0
    # Which item a mapped task has.
    map_index: int | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    log: logging.Logger = field(default_factory=lambda: logging.getLogger(LOGGER))
