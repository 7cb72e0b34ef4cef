"""The context of an attempt, passed to a parameter named ``context``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from servo.model.partition_key import PartitionKey

# Records of this logger keep their level and fields: `log.info("read", extra={"rows": 3})`.
LOGGER = "servo.task"


@dataclass(frozen=True, slots=True)
class Context:
    """In a test: ``clean(orders, context=Context(partition=PartitionKey(day=date(2026, 1, 31))))``."""

    asset_key: str = ""
    partition: PartitionKey | None = None
    run_id: str = ""
    attempt_id: str = ""
    # The number of the task's attempt, from 1.
    attempt: int = 1
    # The same for all attempts of a task, so that external systems can recognize a repeat.
    idempotency_key: str = ""
    # Grows with every attempt, so that external systems can refuse a stale writer.
    fencing_token: int = 0
    # The item's index, in a mapped task.
    map_index: int | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    log: logging.Logger = field(default_factory=lambda: logging.getLogger(LOGGER))
