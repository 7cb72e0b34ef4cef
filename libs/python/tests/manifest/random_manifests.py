"""Random manifests: many valid, some with one or several faults, all small."""

from __future__ import annotations

import hashlib
from random import Random

from servo.v1 import (
    code_pb2,
    common_pb2,
    condition_pb2,
    manifest_pb2,
    partition_pb2,
    quality_pb2,
    run_spec_pb2,
    schedule_pb2,
    sensor_pb2,
    state_pb2,
)

_ZONES = ["", "UTC", "Europe/Berlin", "America/Havana", "Asia/Kolkata", "Pacific/Apia"]
_CRONS = ["0 6 * * *", "*/5 0-6 1,2 * MON"]
_WRONG_CRONS = ["0 6 * *", "0 6 * * $", ""]
_STARTS = {
    "HOUR": "2025-10-25T{hour:02}:30:00Z",
    "DAY": "2025-10-2{n}",
    "WEEK": "2025-0{m}-0{n}",
    "MONTH": "2025-0{m}-01",
}
_ENDS = {"HOUR": "2025-10-27T00:00:00Z", "DAY": "2025-11-05", "WEEK": "2025-11-20", "MONTH": "2026-02-01"}
_CATEGORIES = [state_pb2.ERROR_CATEGORY_TRANSIENT, state_pb2.ERROR_CATEGORY_USER_CODE, state_pb2.ERROR_CATEGORY_INPUT]
# Values by type, the first of each in every list, and some invalid ones.
_VALUES = {
    "UNSPECIFIED": ["eu", "us", "a b/ü,%", "\U0001f389", "~._-"],
    "STRING": ["eu", "=s:", "[x]", "日本"],
    "INTEGER": ["7", "-9223372036854775808", "9223372036854775807", "0"],
    "BOOL": ["true", "false"],
    "DATE": ["2025-10-28", "2024-02-29", "0001-01-01", "9999-12-31"],
    "INSTANT": ["2025-10-28T05:00:00Z", "2024-02-29T23:59:59Z", "0001-01-01T00:00:00Z"],
}
_NO_VALUES = {
    "UNSPECIFIED": ["", "\0"],
    "STRING": ["", "x" * 2_000],
    "INTEGER": ["07", "+7", "9223372036854775808", "1.0", "seven"],
    "BOOL": ["True", "1"],
    "DATE": ["2025-02-29", "2025-1-1", "28.10.2025"],
    "INSTANT": ["2025-10-28T05:00:00", "1970-01-01T00:00:00.000001Z", "2025-10-28T05:00:00+01:00"],
}
# The probability of each fault, in a manifest that may have some.
_WRONG = 0.1


# The content of the code archive, which is never run.
ARTIFACT = b"no code at all"


def manifest(seed: int) -> manifest_pb2.Manifest:
    return _Maker(Random(seed), may_be_wrong=seed % 3 == 0).manifest()


class _Maker:
    def __init__(self, random: Random, *, may_be_wrong: bool) -> None:
        self.random = random
        self.may_be_wrong = may_be_wrong
        # The dimensions of each asset so far, and the assets that yield items.
        self.partitionings: list[set[str]] = []
        self.yielding: list[bool] = []
        self.sources: list[bool] = []
        # The type of lists in this manifest, so that dimensions can be equal.
        self.type = random.choice(list(_VALUES))

    def manifest(self) -> manifest_pb2.Manifest:
        random = self.random
        assets = [self.asset(number) for number in range(random.randint(2, 6))]
        assets += self.made_besides(assets)
        made = manifest_pb2.Manifest(format=1, code_version=random.choice(["", "v1", "é€"]))
        made.assets.extend(random.sample(assets, len(assets)))
        made.artifact.kind = code_pb2.ARTIFACT_KIND_SOURCE_ARCHIVE
        made.artifact.digest = self.pick([hashlib.sha256(ARTIFACT).hexdigest()], ["0" * 63, "X" * 64])
        if random.random() < 0.3:
            made.labels[self.pick(["team"], [""])] = self.pick(["core", "é"], ["\0"])
        made.schedules.extend(self.schedule(name) for name in self.names("nightly", "hourly"))
        made.sensors.extend(self.sensor(name) for name in self.names("files", "hooks", "polls"))
        return made

    def names(self, *known: str) -> list[str]:
        found = [name for name in known if self.random.random() < 0.3]
        return [self.pick([name], [known[0], ""]) for name in found]

    def pick(self, right: list[str], wrong: list[str]) -> str:
        is_wrong = self.may_be_wrong and self.random.random() < _WRONG
        return self.random.choice(wrong if is_wrong else right)

    def run(self) -> run_spec_pb2.RunSpec:
        run = run_spec_pb2.RunSpec(selection=[self.pick(["*", "n.*", "tag:x", "n/a0+"], ["n/a9", "-n/a0", "+"])])
        run.config_json = self.pick(["", '{"a":1}'], ["{"])
        if self.random.random() < 0.3:
            run.partitions.latest = 2
        run.labels["by"] = "clock"
        run.priority = self.random.randint(-3, 3)
        return run

    def schedule(self, name: str) -> schedule_pb2.ScheduleDefinition:
        random = self.random
        made = schedule_pb2.ScheduleDefinition(
            name=name,
            cron=self.pick(_CRONS, _WRONG_CRONS),
            run=self.run(),
            time_zone=self.pick(_ZONES, ["Moon", "utc"]),
            gap=random.choice(schedule_pb2.GapPolicy.keys()),
            overlap=random.choice(schedule_pb2.OverlapPolicy.keys()),
        )
        if random.random() < 0.5:
            made.catch_up_window.seconds = int(self.pick(["0", "3600"], ["-1"]))
            made.catch_up_max_ticks = random.randint(0, 5)
        made.skip_while_running = random.random() < 0.5
        return made

    def sensor(self, name: str) -> sensor_pb2.SensorDefinition:
        made = sensor_pb2.SensorDefinition(name=name, max_runs_per_evaluation=self.random.randint(0, 9), run=self.run())
        match self.pick(["push", "poll", "webhook", "activity"], ["none"]):
            case "push":
                made.push.topic, made.push.filter = "files", 'attributes.kind = "csv"'
            case "poll":
                made.poll.code.CopyFrom(self.code())
                made.poll.interval.seconds = int(self.pick(["30"], ["0", "-1"]))
                made.poll.secrets.append(self.secret("token"))
            case "webhook":
                scheme = self.random.choice(sensor_pb2.WebhookScheme.keys())
                made.webhook.CopyFrom(sensor_pb2.WebhookSource(secret=self.secret("key"), scheme=scheme))
            case "activity":
                made.activity.asset_keys.append("n/a0")
                made.activity.run_filter = "state = FAILED"
        return made

    def code(self) -> code_pb2.CodeRef:
        if self.random.random() < 0.5:
            config = self.pick(["", '{"a":1.50}'], ["{", "nan"])
            return code_pb2.CodeRef(handler=code_pb2.Handler(name="noop", config_json=config))
        module = self.pick(["shop.assets"], [""])
        return code_pb2.CodeRef(entry_point=code_pb2.EntryPoint(module=module, function="f"))

    def secret(self, name: str) -> common_pb2.SecretRef:
        provider = self.pick(["env", "gcp-secret-manager"], ["vault", ""])
        return common_pb2.SecretRef(name=name, provider=provider, path=self.pick(["HERE"], [""]))

    def asset(self, number: int) -> manifest_pb2.AssetDefinition:
        random = self.random
        source = random.random() < 0.15
        asset = manifest_pb2.AssetDefinition(key=self.pick([f"n/a{number}"], ["n/a0", "N/x"]), source=source)
        if random.random() < 0.8:
            asset.partitions.CopyFrom(self.partitions())
        self.partitionings.append({dimension.name for dimension in asset.partitions.dimensions})
        self.yielding.append(not source and random.random() < 0.4)
        self.sources.append(source)
        asset.yields_items = self.yielding[-1]
        asset.io = self.pick(["", "parquet"], ["\0"])
        if not source:
            asset.code.CopyFrom(self.code())
            asset.dependencies.extend(self.dependencies(number))
            self.settings(asset)
        if random.random() < 0.2:
            asset.tags["x"] = random.choice(["", "y", "\U0001f389"])
        asset.owners.extend(random.sample(["zoe", "ann", "ünal"], random.randint(0, 3)))
        return asset

    def made_besides(self, assets: list[manifest_pb2.AssetDefinition]) -> list[manifest_pb2.AssetDefinition]:
        """A further output of one of the assets."""
        if self.random.random() < 0.7 or all(self.sources):
            return []
        maker = self.random.choice([asset for asset, source in zip(assets, self.sources, strict=True) if not source])
        more = manifest_pb2.AssetDefinition(key="n/besides", made_by=self.pick([maker.key], ["n/ghost", "n/besides"]))
        if maker.HasField("partitions") and self.pick(["same"], ["none"]) == "same":
            more.partitions.CopyFrom(maker.partitions)
        return [more]

    def settings(self, asset: manifest_pb2.AssetDefinition) -> None:
        random = self.random
        asset.priority = random.randint(-5, 5)
        asset.pool = self.pick(["", "slow"], ["\0", "x" * 129])
        asset.may_skip, asset.isolated, asset.quarantine = (random.random() < 0.3 for _ in range(3))
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
            asset.freshness.max_age.seconds = int(self.pick(["60"], ["0"]))
            asset.freshness.deadline_cron = self.pick(_CRONS, _WRONG_CRONS[:2])
            asset.freshness.time_zone = self.pick(_ZONES, ["Moon"])
        if random.random() < 0.3:
            asset.automation.CopyFrom(self.condition(2))
        asset.secrets.extend(self.secret(name) for name in self.names("b_key", "a_key"))
        asset.checks.extend(self.check(name) for name in self.names("zero", "one", "two"))

    def condition(self, depth: int) -> condition_pb2.AutomationCondition:
        random = self.random
        made = condition_pb2.AutomationCondition()
        facts = ["missing", "failed", "upstream_updated", "upstream_ready", "code_changed", "too_old"]
        kind = random.choice([*facts, "cron", *(["all_of", "any_of", "negated"] if depth else [])])
        if kind in facts:
            setattr(made, kind, True)
        elif kind == "cron":
            made.cron.cron, made.cron.time_zone = random.choice(_CRONS), random.choice(_ZONES)
        elif kind == "negated":
            made.negated.CopyFrom(self.condition(depth - 1))
        else:
            getattr(made, kind).conditions.extend(self.condition(depth - 1) for _ in range(random.randint(1, 3)))
        return made

    def check(self, name: str) -> quality_pb2.CheckDefinition:
        random = self.random
        made = quality_pb2.CheckDefinition(
            name=name,
            description=self.pick(["", "Ünique."], ["\0"]),
            severity=random.choice(quality_pb2.Severity.keys()),
            phase=random.choice(quality_pb2.CheckPhase.keys()),
        )
        if random.random() < 0.3:
            made.timeout.seconds = int(self.pick(["90"], ["0", "-5"]))
        match self.pick(["row_count", "not_null", "unique", "freshness", "schema", "sql", "code"], ["none"]):
            case "row_count":
                made.row_count.min = random.choice([0, 2**64 - 1])
                if random.random() < 0.5:
                    made.row_count.min_share_of_previous_ppm = 900_000
            case "not_null":
                made.not_null.columns.extend(["b", "a"])
            case "unique":
                made.unique.columns.extend(["ü"])
            case "freshness":
                made.freshness.column, made.freshness.max_age.seconds = "at", 60
            case "schema":
                made.schema.columns.add(name="id", type="int64", nullable=random.random() < 0.5)
                made.schema.allow_extra = random.random() < 0.5
            case "sql":
                made.sql.query = "SELECT *\nFROM output"
            case "code":
                made.code.module, made.code.function = "shop.checks", "fine"
        return made

    def dependencies(self, number: int) -> list[manifest_pb2.Dependency]:
        random = self.random
        found: list[manifest_pb2.Dependency] = []
        for upstream in random.sample(range(number), min(number, random.randint(0, 2))):
            name = self.pick([f"n/a{upstream}"], ["n/ghost", f"n/a{number}", f"n/a{number + 1}"])
            parameter = self.pick(["", f"p{upstream}"], ["1st", "p"])
            dependency = manifest_pb2.Dependency(upstream=name, parameter=parameter)
            dependency.optional = random.random() < 0.2
            is_mapped = self.yielding[upstream] and not any(each.mapped for each in found) and random.random() < 0.6
            dependency.mapped = self.pick([str(is_mapped)], [str(not is_mapped)]) == "True"
            rule = self.rule(self.partitionings[upstream], self.partitionings[number])
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
            first = _VALUES[self.type][0]
            rule.table.entries.add(downstream=first, upstream=[self.pick([first], ["mars", "us"])])
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
            name = self.pick(["region"], ["Region", "_map"])
            made.dimensions.add(name=name, fixed=self.listed())
        return made

    def listed(self) -> partition_pb2.StaticValues:
        first, *others = _VALUES[self.type]
        chosen = [first, *self.random.sample(others, self.random.randint(0, len(others)))]
        chosen += [] if self.pick([""], ["again"]) == "" else [first]
        chosen += [] if self.pick([""], ["wrong"]) == "" else [self.random.choice(_NO_VALUES[self.type])]
        return partition_pb2.StaticValues(type=f"VALUE_TYPE_{self.type}", values=chosen)
