"""Manifests from a seed: many right, some wrong in one way or several, small enough to look at."""

from __future__ import annotations

from random import Random

from servo.v1 import (
    code_pb2,
    common_pb2,
    manifest_pb2,
    partition_pb2,
    quality_pb2,
    run_spec_pb2,
    schedule_pb2,
    state_pb2,
)

_ZONES = ["", "UTC", "Europe/Berlin", "America/Havana", "Asia/Kolkata", "Pacific/Apia"]
_STARTS = {
    "HOUR": "2025-10-25T{hour:02}:30:00Z",
    "DAY": "2025-10-2{n}",
    "WEEK": "2025-0{m}-0{n}",
    "MONTH": "2025-0{m}-01",
}
_ENDS = {"HOUR": "2025-10-27T00:00:00Z", "DAY": "2025-11-05", "WEEK": "2025-11-20", "MONTH": "2026-02-01"}
_CATEGORIES = [state_pb2.ERROR_CATEGORY_TRANSIENT, state_pb2.ERROR_CATEGORY_USER_CODE, state_pb2.ERROR_CATEGORY_INPUT]
# How often a thing is wrong, in a manifest that may be.
_WRONG = 0.1


def manifest(seed: int) -> manifest_pb2.Manifest:
    return _Maker(Random(seed), may_be_wrong=seed % 3 == 0).manifest()


class _Maker:
    def __init__(self, random: Random, *, may_be_wrong: bool) -> None:
        self.random = random
        self.may_be_wrong = may_be_wrong
        # The dimensions of each asset so far.
        self.cuts: list[set[str]] = []

    def manifest(self) -> manifest_pb2.Manifest:
        random = self.random
        assets = [self.asset(number) for number in range(random.randint(2, 6))]
        made = manifest_pb2.Manifest(format=1, code_version=random.choice(["", "v1", "é€"]))
        made.assets.extend(random.sample(assets, len(assets)))
        if random.random() < 0.3:
            run = run_spec_pb2.RunSpec(selection=[self.pick(["*", "+n/a1", "n.*", "tag:x"], ["n/a9", "-n/a0", "+"])])
            cron = self.pick(["0 6 * * *", "*/5 0-6 1,2 * MON"], ["0 6 * *", "0 6 * * $"])
            zone = self.pick(_ZONES, ["Moon", "utc"])
            made.schedules.append(schedule_pb2.ScheduleDefinition(name="s", cron=cron, run=run, time_zone=zone))
        return made

    def pick(self, right: list[str], wrong: list[str]) -> str:
        is_wrong = self.may_be_wrong and self.random.random() < _WRONG
        return self.random.choice(wrong if is_wrong else right)

    def asset(self, number: int) -> manifest_pb2.AssetDefinition:
        random = self.random
        source = random.random() < 0.15
        asset = manifest_pb2.AssetDefinition(key=self.pick([f"n/a{number}"], ["n/a0", "N/x"]), source=source)
        if random.random() < 0.8:
            asset.partitions.CopyFrom(self.partitions())
        self.cuts.append({dimension.name for dimension in asset.partitions.dimensions})
        if not source:
            config = self.pick(["", '{"a":1.50}'], ["{", "nan"])
            asset.code.CopyFrom(code_pb2.CodeRef(handler=code_pb2.Handler(name="noop", config_json=config)))
            asset.dependencies.extend(self.dependencies(number))
            self.settings(asset)
        if random.random() < 0.2:
            asset.tags["x"] = random.choice(["", "y", "\U0001f389"])
        asset.owners.extend(random.sample(["zoe", "ann", "ünal"], random.randint(0, 3)))
        return asset

    def settings(self, asset: manifest_pb2.AssetDefinition) -> None:
        random = self.random
        asset.priority = random.randint(-5, 5)
        asset.pool = self.pick(["", "slow"], ["\0", "x" * 129])
        if random.random() < 0.4:
            attempts = int(self.pick(["0", "3", "1000"], ["1001"]))
            retry = common_pb2.RetryPolicy(max_attempts=attempts, never_on_types=["B", "A"])
            delays = [(0, 0), (1, 500_000_000), (2, 123_456_789), (3, 1_000)]
            retry.initial_delay.seconds, retry.initial_delay.nanos = random.choice(delays)
            retry.retry_on_categories.extend(random.sample(_CATEGORIES, 2))
            asset.retry.CopyFrom(retry)
        if random.random() < 0.3:
            resources = common_pb2.Resources(cpu_millicores=500, memory_bytes=random.choice([0, 2**40, 2**64 - 1]))
            resources.capabilities.extend(["b", "a"])
            asset.resources.CopyFrom(resources)
        if random.random() < 0.3:
            seconds = int(self.pick(["60", str(366 * 24 * 3600)], ["0", "-1", str(366 * 24 * 3600 + 1)]))
            asset.timeouts.execution.seconds = seconds
        if random.random() < 0.3:
            rows = quality_pb2.RowCountCheck(min=0)
            asset.checks.append(quality_pb2.CheckDefinition(name=self.pick(["rows"], [""]), row_count=rows))

    def dependencies(self, number: int) -> list[manifest_pb2.Dependency]:
        random = self.random
        found = []
        for upstream in random.sample(range(number), min(number, random.randint(0, 2))):
            name = self.pick([f"n/a{upstream}"], ["n/ghost", f"n/a{number}", f"n/a{number + 1}"])
            parameter = self.pick(["", f"p{upstream}"], ["1st", "p"])
            dependency = manifest_pb2.Dependency(upstream=name, parameter=parameter)
            rule = self.rule(self.cuts[upstream], self.cuts[number])
            if rule is not None and random.random() < 0.5:
                dependency.mapping.dimensions.append(rule)
            found.append(dependency)
        return found

    def rule(self, up: set[str], down: set[str]) -> partition_pb2.DimensionMapping | None:
        random = self.random
        if self.may_be_wrong:
            up, down = {"time", "region"}, {"time", "region"}
        if not up:
            return None
        rule = partition_pb2.DimensionMapping(upstream=random.choice(sorted(up)))
        if random.random() < 0.3 or rule.upstream not in down:
            rule.latest = int(self.pick(["1", "3"], ["0"]))
        elif rule.upstream == "time":
            rule.downstream = "time"
            rule.window.start_offset, rule.window.end_offset = random.randint(-3, 1), random.randint(-1, 2)
        elif random.random() < 0.5:
            rule.identity, rule.downstream = True, "region"
        else:
            rule.downstream = "region"
            rule.table.entries.add(downstream="eu", upstream=[self.pick(["eu"], ["mars", "us"])])
        return rule

    def partitions(self) -> partition_pb2.PartitionsDefinition:
        random = self.random
        made = partition_pb2.PartitionsDefinition()
        if random.random() < 0.75:
            grain = random.choice(list(_STARTS))
            start = _STARTS[grain].format(hour=random.randint(0, 23), n=random.randint(1, 9), m=random.randint(1, 9))
            grid = partition_pb2.TimeGrid(grain=f"TIME_GRAIN_{grain}", time_zone=self.pick(_ZONES, ["Mars/Base"]))
            grid.start = self.pick([start], ["2025-02-30", "soon", ""])
            grid.end = self.pick([_ENDS[grain]], ["2020-01-01", "later"])
            made.dimensions.add(name="time", time=grid)
        if random.random() < 0.4 or not made.dimensions:
            others = random.sample(["us", "a b/ü,%"], random.randint(0, 2))
            values = partition_pb2.StaticValues(
                values=["eu", *others, *([] if self.pick([""], ["x"]) == "" else ["eu"])]
            )
            made.dimensions.add(name=self.pick(["region"], ["Region", "_map"]), fixed=values)
        return made
