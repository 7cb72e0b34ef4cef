"""The planner's refusals, with the same table as services/planner/src/core/check/tests.rs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from google.protobuf.duration_pb2 import Duration

from servo.manifest.check import check
from servo.manifest.unserved import warnings
from servo.v1 import code_pb2, common_pb2, manifest_pb2, partition_pb2, quality_pb2, run_spec_pb2, schedule_pb2
from servo.v1.manifest_pb2 import AssetDefinition, Manifest

Change = Callable[[Manifest], object]


def source(key: str) -> AssetDefinition:
    return AssetDefinition(key=key, source=True)


def asset(key: str, *upstream: str) -> AssetDefinition:
    dependencies = [manifest_pb2.Dependency(upstream=each, parameter=each.replace("/", "_")) for each in upstream]
    code = code_pb2.CodeRef(handler=code_pb2.Handler(name="noop"))
    return AssetDefinition(key=key, dependencies=dependencies, code=code)


def time(name: str, zone: str, start: str, end: str) -> partition_pb2.PartitionDimension:
    grid = partition_pb2.TimeGrid(grain="TIME_GRAIN_DAY", time_zone=zone, start=start, end=end)
    return partition_pb2.PartitionDimension(name=name, time=grid)


def days() -> partition_pb2.PartitionDimension:
    return time("day", "", "2026-01-01", "2026-02-01")


def fixed(name: str, *values: str) -> partition_pb2.PartitionDimension:
    return partition_pb2.PartitionDimension(name=name, fixed=partition_pb2.StaticValues(values=values))


def partitioning(given: AssetDefinition, *dimensions: partition_pb2.PartitionDimension) -> AssetDefinition:
    given.partitions.CopyFrom(partition_pb2.PartitionsDefinition(dimensions=dimensions))
    return given


def good() -> Manifest:
    """A small valid manifest."""
    assets = [
        source("raw/events"),
        asset("n/a", "raw/events"),
        asset("n/b", "n/a"),
        partitioning(asset("n/c", "n/b"), days()),
    ]
    return Manifest(format=1, assets=assets)


def set_to(path: str, value: object) -> Change:
    """``path`` is such as ``assets[1].pool``; repeated messages are appended to."""

    def change(manifest: Manifest) -> None:
        holder, _, field = path.rpartition(".")
        target = eval(f"m.{holder}" if holder else "m", {"m": manifest})
        setattr(target, field, value)

    return change


def repeat_dependency(manifest: Manifest) -> None:
    manifest.assets[2].dependencies.append(manifest.assets[2].dependencies[0])


def code_of_source(manifest: Manifest) -> None:
    manifest.assets[0].code.CopyFrom(manifest.assets[1].code)


def partitioning_c(*dimensions: partition_pb2.PartitionDimension) -> Change:
    return lambda manifest: partitioning(manifest.assets[3], *dimensions)


def window_between_strangers(manifest: Manifest) -> None:
    partitioning(manifest.assets[2], fixed("r", "x"))
    rule = partition_pb2.DimensionMapping(upstream="day", downstream="day", window=partition_pb2.TimeWindow())
    manifest.assets[3].dependencies[0].mapping.dimensions.append(rule)


def also(made_by: str) -> Change:
    return lambda manifest: manifest.assets.append(AssetDefinition(key="n/also", made_by=made_by))


def artifact(kind: str) -> Change:
    made = code_pb2.CodeArtifact(digest="0" * 64, kind=kind)
    return lambda manifest: manifest.artifact.CopyFrom(made)


def schedule(cron: str, zone: str, selection: str) -> Change:
    run = run_spec_pb2.RunSpec(selection=[selection])
    definition = schedule_pb2.ScheduleDefinition(name="s", cron=cron, time_zone=zone, run=run)
    return lambda manifest: manifest.schedules.append(definition)


def secret(manifest: Manifest) -> None:
    manifest.assets[1].secrets.append(common_pb2.SecretRef(name="k", provider="post-it", path="p"))


_AT = "assets[3].partitions"


@pytest.mark.parametrize(
    ("change", "path", "part"),
    [
        (set_to("assets[3].key", "Bad"), "assets[3].key", "is not an asset key"),
        (set_to("assets[3].key", "n/b"), "assets[3].key", "is already declared at assets[2]"),
        (
            set_to("assets[2].dependencies[0].upstream", "raw/event"),
            "assets[2].dependencies[0].upstream",
            "there is no asset `raw/event` in the manifest; did you mean `raw/events`?",
        ),
        (repeat_dependency, "assets[2].dependencies[1]", "`n/a` appears twice"),
        (
            set_to("assets[2].dependencies[0].parameter", "1st"),
            "assets[2].dependencies[0].parameter",
            "is not a parameter name",
        ),
        (set_to("assets[2].dependencies[0].mapped", True), "assets[2].dependencies[0].mapped", "yields no items"),
        (lambda m: m.assets[1].ClearField("code"), "assets[1].code", "is missing"),
        (code_of_source, "assets[0].code", "made elsewhere"),
        (set_to("format", 2), "format", "the only format is 1"),
        (set_to("assets[1].config_json", "{"), "assets[1].config_json", "is no JSON"),
        (set_to("assets[1].config_json", "1" * 65_537), "assets[1].config_json", "65537 bytes"),
        (set_to("assets[1].description", "x" * (1 << 20)), "assets[1].description", "1048576 bytes"),
        (set_to("assets[1].pool", "x" * (1 << 20)), "assets[1].pool", "1048576 bytes"),
        (set_to("assets[1].pool", "a\0"), "assets[1].pool", "control character"),
        (lambda m: m.assets[1].timeouts.execution.CopyFrom(Duration()), "assets[1].timeouts.execution", "is zero"),
        (
            lambda m: m.assets[1].timeouts.execution.CopyFrom(Duration(seconds=-1)),
            "assets[1].timeouts.execution",
            "is negative",
        ),
        (
            lambda m: m.assets[1].retry.retry_on_categories.append(99),
            "assets[1].retry.retry_on_categories[0]",
            "not an error category",
        ),
        (
            lambda m: m.assets[1].checks.append(quality_pb2.CheckDefinition(name="c")),
            "assets[1].checks[0]",
            "does not say what is checked",
        ),
        (secret, "assets[1].secrets[0].provider", "is not known"),
        (
            partitioning_c(time("day", "Mars/Base", "2026-01-01", "")),
            f"{_AT}.dimensions[0].time.time_zone",
            "Mars/Base",
        ),
        (partitioning_c(time("day", "", "yesterday", "")), f"{_AT}.dimensions[0].time.start", "is not a date"),
        (
            partitioning_c(time("day", "", "2026-01-02", "2026-01-01")),
            f"{_AT}.dimensions[0].time.end",
            "before the start",
        ),
        (partitioning_c(fixed("r")), f"{_AT}.dimensions[0].fixed.values", "has 0 values"),
        (partitioning_c(fixed("r", "a", "a")), f"{_AT}.dimensions[0].fixed.values", "wrong or repeated"),
        (partitioning_c(fixed("R", "a")), f"{_AT}.dimensions[0].name", "is not a dimension name"),
        (partitioning_c(days(), days()), _AT, "appears twice"),
        (
            window_between_strangers,
            "assets[3].dependencies[0].mapping.dimensions[0].upstream",
            "has no dimension `day`",
        ),
        (also("n/z"), "assets[4].made_by", "there is no asset `n/z`"),
        (also("raw/events"), "assets[4].made_by", "has no task of its own"),
        (also("n/c"), "assets[4].made_by", "partitioned differently"),
        (
            artifact("ARTIFACT_KIND_CONTAINER_IMAGE"),
            "artifact.kind",
            "containers are not served yet, so deploy a SOURCE_ARCHIVE",
        ),
        (artifact("ARTIFACT_KIND_UNSPECIFIED"), "artifact.kind", "is missing; write SOURCE_ARCHIVE"),
        (schedule("0 6 * *", "", "n/a"), "schedules[0].cron", "not a cron expression of five fields"),
        (schedule("0 6 * * *", "Moon", "n/a"), "schedules[0].time_zone", "is not an IANA time zone"),
        (schedule("0 6 * * *", "", "n/z"), "schedules[0].run.selection[0]", "there is no asset `n/z`"),
        (schedule("0 6 * * *", "", "+"), "schedules[0].run.selection[0]", "is not a selection"),
    ],
)
def test_each_fault_is_reported_once(change: Change, path: str, part: str) -> None:
    manifest = good()
    change(manifest)
    _, faults = check(manifest)
    assert [fault[0] for fault in faults] == [path]
    assert part in faults[0][1]


def test_valid_manifest_passes() -> None:
    fine = good()
    also("n/a")(fine)
    checked, faults = check(fine)
    assert faults == []
    assert checked is not None
    assert [checked.makers[index] for index in range(5)] == [0, 1, 2, 3, 1]


def test_each_unserved_kind_is_reported_once_with_its_number() -> None:
    given = good()
    assert warnings(given) == []
    for _ in range(2):
        schedule("0 6 * * *", "", "n/a")(given)
    given.sensors.add(name="files")
    given.assets[2].automation.SetInParent()
    for each in given.assets[1:3]:
        each.freshness.SetInParent()
    assert [(each.field, each.description.split(":")[0]) for each in warnings(given)] == [
        ("schedules[0]", "2 schedules"),
        ("sensors[0]", "1 sensor"),
        ("assets[2].automation", "1 automation condition"),
        ("assets[1].freshness", "2 freshness policies"),
    ]


def test_all_faults_are_reported_together() -> None:
    broken = good()
    broken.assets[1].key = "bad"
    broken.assets[2].config_json = "}"
    partitioning(broken.assets[3], fixed("", "a"))
    _, faults = check(broken)
    # The reader of the asset that lost its key reports it as missing.
    assert [path for path, _ in faults] == [
        "assets[1].key",
        "assets[2].config_json",
        "assets[3].partitions.dimensions[0].name",
        "assets[2].dependencies[0].upstream",
    ]


def test_cycles_show_their_path() -> None:
    assets = [asset("n/a", "n/c"), asset("n/b", "n/a"), asset("n/c", "n/b"), asset("n/d", "n/d")]
    _, faults = check(Manifest(format=1, assets=assets))
    circle = "the dependencies form a cycle: {}; drop one of them"
    assert faults == [
        ("assets[0].dependencies[0].upstream", circle.format("n/a -> n/b -> n/c -> n/a")),
        ("assets[3].dependencies[0].upstream", circle.format("n/d -> n/d")),
    ]


def test_cycle_through_a_multi_asset_is_found() -> None:
    together = asset("n/also", "n/b")
    together.ClearField("code")
    together.made_by = "n/a"
    _, faults = check(Manifest(format=1, assets=[asset("n/a"), together, asset("n/b", "n/a")]))
    assert [path for path, _ in faults] == ["assets[1].dependencies[0].upstream"]


def test_asset_count_is_limited() -> None:
    def faults(count: int) -> list[str]:
        manifest = Manifest(format=1, assets=[source(f"n/a{number}") for number in range(count)])
        return [path for path, _ in check(manifest)[1]]

    assert faults(10_000) == []
    assert faults(10_001) == ["assets"]
