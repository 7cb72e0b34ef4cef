"""Servo: declare data assets as plain functions; Servo plans, runs, retries, schedules and backfills them.

    from servo import Daily, asset

    @asset(namespace="raw", partitions=Daily("2026-01-01"))
    def orders(context): ...

    @asset(namespace="staging")
    def clean(orders): ...

Names are imported when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from servo.client.aio import AsyncClient
    from servo.client.sync import Client
    from servo.define import checks, conditions
    from servo.define.asset import Asset, Output, Source, asset, multi_asset, source
    from servo.define.automation import (
        Activity,
        PollSensor,
        Push,
        RunRequest,
        Schedule,
        Sensor,
        SensorResult,
        Webhook,
        schedule,
        sensor,
    )
    from servo.define.checks import check
    from servo.define.context import Context
    from servo.define.dependencies import AllOf, Identity, In, Latest, Table, Window, mapped
    from servo.define.partitions import Daily, Dynamic, Hourly, Monthly, Partitions, Static, Weekly
    from servo.define.results import CheckOutcome, Fatal, Items, Retriable, Skip, skip
    from servo.define.run import AllPartitions, LatestPartitions, Run, Slice, Slices
    from servo.define.settings import Freshness, Resources, Retry, Secret
    from servo.errors import InvalidValue, ServoError
    from servo.local.materialize import materialize
    from servo.local.result import MaterializeResult, RunFailed
    from servo.manifest.faults import Fault, ManifestInvalid
    from servo.model.asset_key import AssetKey
    from servo.model.partition_key import PartitionKey

__version__ = "0.1.0"

_HOMES = {
    "client.aio": ("AsyncClient",),
    "client.sync": ("Client",),
    "define.asset": ("Asset", "Output", "Source", "asset", "multi_asset", "source"),
    "define.automation": (
        *("Activity", "PollSensor", "Push", "RunRequest", "Schedule", "Sensor", "SensorResult", "Webhook"),
        *("schedule", "sensor"),
    ),
    "define.checks": ("check",),
    "define.context": ("Context",),
    "define.dependencies": ("AllOf", "Identity", "In", "Latest", "Table", "Window", "mapped"),
    "define.partitions": ("Daily", "Dynamic", "Hourly", "Monthly", "Partitions", "Static", "Weekly"),
    "define.results": ("CheckOutcome", "Fatal", "Items", "Retriable", "Skip", "skip"),
    "define.run": ("AllPartitions", "LatestPartitions", "Run", "Slice", "Slices"),
    "define.settings": ("Freshness", "Resources", "Retry", "Secret"),
    "errors": ("InvalidValue", "ServoError"),
    "local.materialize": ("materialize",),
    "local.result": ("MaterializeResult", "RunFailed"),
    "manifest.faults": ("Fault", "ManifestInvalid"),
    "model.asset_key": ("AssetKey",),
    "model.partition_key": ("PartitionKey",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = ("checks", "conditions")

__all__ = [
    "Activity",
    "AllOf",
    "AllPartitions",
    "Asset",
    "AssetKey",
    "AsyncClient",
    "CheckOutcome",
    "Client",
    "Context",
    "Daily",
    "Dynamic",
    "Fatal",
    "Fault",
    "Freshness",
    "Hourly",
    "Identity",
    "In",
    "InvalidValue",
    "Items",
    "Latest",
    "LatestPartitions",
    "ManifestInvalid",
    "MaterializeResult",
    "Monthly",
    "Output",
    "PartitionKey",
    "Partitions",
    "PollSensor",
    "Push",
    "Resources",
    "Retriable",
    "Retry",
    "Run",
    "RunFailed",
    "RunRequest",
    "Schedule",
    "Secret",
    "Sensor",
    "SensorResult",
    "ServoError",
    "Skip",
    "Slice",
    "Slices",
    "Source",
    "Static",
    "Table",
    "Webhook",
    "Weekly",
    "Window",
    "asset",
    "check",
    "checks",
    "conditions",
    "mapped",
    "materialize",
    "multi_asset",
    "schedule",
    "sensor",
    "skip",
    "source",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"servo.define.{name}")
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'servo' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"servo.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
