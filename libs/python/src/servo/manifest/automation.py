"""Schedules, sensors and their runs as proto messages."""

from __future__ import annotations

from typing import Any

from servo.define.asset import Asset, Output, Source
from servo.define.automation import Activity, PollSensor, Push, Schedule, Sensor, Webhook
from servo.define.run import AllPartitions, Keys, LatestPartitions, PartitionChoice, Run, Slice, Slices
from servo.define.settings import Secret
from servo.define.validation import INT32, UINT32, flag, listed, of_kind, text, texts, whole
from servo.v1 import code_pb2, partition_pb2, run_spec_pb2, schedule_pb2, sensor_pb2

from .entry_points import EntryPoints
from .values import config_json, duration, secret


def schedule(given: Schedule) -> schedule_pb2.ScheduleDefinition:
    ticks = given.catch_up_max_ticks
    return schedule_pb2.ScheduleDefinition(
        name=given.name,
        description=given.description,
        cron=text("cron", given.cron),
        time_zone=text("zone", given.zone),
        gap=f"GAP_POLICY_{given.gap.upper()}" if given.gap else None,
        overlap=f"OVERLAP_POLICY_{given.overlap.upper()}" if given.overlap else None,
        catch_up_window=duration(given.catch_up_window, "catch_up_window"),
        catch_up_max_ticks=None if ticks is None else whole("catch_up_max_ticks", ticks, UINT32),
        run=run_spec(given.run),
        skip_while_running=flag("skip_while_running", given.skip_while_running),
    )


def sensor(given: Sensor | PollSensor[..., Any], entry_points: EntryPoints) -> sensor_pb2.SensorDefinition:
    message = sensor_pb2.SensorDefinition(
        name=given.name,
        description=text("description", given.description),
        max_runs_per_evaluation=whole("max_runs", given.max_runs, UINT32),
    )
    if given.run is not None:
        message.run.CopyFrom(run_spec(given.run))
    if isinstance(given, PollSensor):
        message.poll.CopyFrom(_poll(given, entry_points))
        return message
    match given.on:
        case Push(topic, filter_):
            message.push.CopyFrom(sensor_pb2.PushSource(topic=topic, filter=filter_))
        case Webhook(key, scheme):
            name = f"WEBHOOK_SCHEME_{scheme.upper()}" if scheme else None
            message.webhook.CopyFrom(sensor_pb2.WebhookSource(secret=secret(key), scheme=name))
        case Activity(assets, run_filter):
            keys = [_key(each) for each in listed("assets", assets, (str, Asset, Source, Output), "assets")]
            message.activity.CopyFrom(sensor_pb2.ActivitySource(asset_keys=keys, run_filter=run_filter))
    return message


def run_spec(given: Run) -> run_spec_pb2.RunSpec:
    of_kind("run", given, Run, "Run(…)")
    return run_spec_pb2.RunSpec(
        selection=given.selection,
        partitions=_partitions(given.partitions),
        labels=texts("labels", given.labels),
        config_json=config_json(given.config),
        priority=whole("priority", given.priority, INT32),
        skip_up_to_date=flag("skip_up_to_date", given.skip_up_to_date),
    )


def _poll(given: PollSensor[..., Any], entry_points: EntryPoints) -> sensor_pb2.PollSource:
    module, function = entry_points.of_definition(given)
    return sensor_pb2.PollSource(
        code=code_pb2.CodeRef(entry_point=code_pb2.EntryPoint(module=module, function=function)),
        interval=duration(given.interval, "interval"),
        timeout=duration(given.timeout, "timeout"),
        secrets=[secret(each) for each in listed("secrets", given.secrets, Secret, "secrets")],
        pool=text("pool", given.pool),
    )


def _partitions(given: PartitionChoice | None) -> partition_pb2.PartitionSelection | None:
    match given:
        case None:
            return None
        case Keys(keys):
            return partition_pb2.PartitionSelection(keys=partition_pb2.PartitionKeys(keys=keys))
        case Slices(slices):
            listed = [_slice(dimension, each) for dimension, each in sorted(slices.items())]
            return partition_pb2.PartitionSelection(slices=partition_pb2.PartitionSlices(slices=listed))
        case AllPartitions():
            return partition_pb2.PartitionSelection(all=True)
        case LatestPartitions(count):
            return partition_pb2.PartitionSelection(latest=count)


def _slice(dimension: str, given: Slice) -> partition_pb2.DimensionSlice:
    return partition_pb2.DimensionSlice(dimension=dimension, values=given.values, start=given.start, end=given.end)


def _key(asset: Asset[..., Any] | Source | Output | str) -> str:
    return asset if isinstance(asset, str) else str(asset.key)
