"""A small project, as users write it."""

from __future__ import annotations

import servo
from servo import Daily, In, Latest, Partitions, Resources, Retry, Static, Window, asset, checks, conditions, mapped


class Shop:
    def load(self, partition: servo.PartitionKey | None) -> str:
        return f"what the shop says of {partition}"


events = servo.source("events", namespace="raw", description="From the shop.", partitions=Daily("2026-01-01"), io=Shop)


@asset(
    namespace="raw",
    partitions=Daily("2026-01-01", zone="Europe/Berlin"),
    retry=Retry(attempts=5, backoff="linear", delay="10s", on=(ConnectionError, "transient"), never_on=(ValueError,)),
    timeout="1h 30m",
    resources=Resources(cpu=0.5, memory="1GiB", capabilities=("duckdb",)),
    checks=[checks.row_count(at_least=1).on(severity="critical"), checks.schema({"id": "int64", "note": "string?"})],
    tags={"team": "core"},
    owners=["ann@example.com"],
    secrets=[servo.Secret.env("SHOP_KEY")],
    config={"rate": 0.5, "currency": "€"},
    io="parquet",
    quarantine=True,
)
def orders(events: object) -> list[int]:
    """Orders of a day."""
    return [len(str(events))]


@asset(
    namespace="marts",
    partitions=Partitions(day=Daily("2026-01-01"), region=Static("eu", "us")),
    deps={"orders": In(orders, mapping={"day": Window(-6, 0)})},
    automation=conditions.upstream_updated & ~conditions.Cron("0 6 * * *"),
    freshness=servo.Freshness(max_age="1d"),
)
def revenue(orders: list[int], rate: int = 2) -> int:
    return sum(orders) * rate


@asset(namespace="marts", deps=[In(revenue, mapping={"day": Latest(3)})], yields_items=True, may_skip=True)
def files() -> servo.Items[str]:
    return servo.Items(["a", "b"])


@asset(namespace="marts", deps={"file": mapped(files)}, priority=-3, pool="slow", isolation="fresh")
def parsed(file: str) -> str:
    return file.upper()


@servo.multi_asset(namespace="marts", outputs=["low", "high"])
def halves(parsed: object) -> dict[str, object]:
    return {"low": parsed, "high": parsed}


@servo.check(revenue, severity="warning")
def not_negative(revenue: int) -> bool:
    return revenue >= 0


@servo.schedule("0 6 * * *", zone="Europe/Berlin", overlap="both", catch_up_max_ticks=0)
def nightly() -> servo.Run:
    return servo.Run("+marts/revenue", partitions=servo.LatestPartitions(2), labels={"by": "clock"})


@servo.sensor(interval="30s", run=servo.Run(halves))
def new_files(cursor: str) -> servo.SensorResult:
    return servo.SensorResult(cursor)


finished = servo.Sensor("finished", servo.Activity([orders], "state = FAILED"), run=servo.Run("marts.*"))
