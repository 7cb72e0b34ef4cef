"""Limits that the services enforce; checked here before anything is sent."""

from __future__ import annotations

from typing import Final

TASKS_PER_RUN_MAX: Final = 50_000
MAPPED_ITEMS_PER_TASK_MAX: Final = 10_000
ASSETS_PER_MANIFEST_MAX: Final = 10_000
STATIC_VALUES_MAX: Final = 10_000
PARTITION_VALUES_MAX: Final = 1_000_000
WINDOW_PERIODS_MAX: Final = 100_000
CONFIG_BYTES_MAX: Final = 64 * 1024
MANIFEST_INLINE_BYTES_MAX: Final = 1024 * 1024

NAME_BYTES_MAX: Final = 128
SLUG_BYTES_MAX: Final = 63
PARTITION_DIMENSIONS_MAX: Final = 8
PARTITION_KEY_BYTES_MAX: Final = 1024
RUN_KEY_BYTES_MAX: Final = 512
KEY_ID_BYTES_MAX: Final = 32
PRESIGNED_BYTES_MAX: Final = 1024
SECRET_BYTES_MIN: Final = 32
JSON_DEPTH_MAX: Final = 64

CLOCK_SKEW_SECONDS_MAX: Final = 60
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
UINT64_MAX: Final = 2**64 - 1
