"""Assets and sources as proto messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from servo.define.asset import Asset, Output, Settings, Source
from servo.define.checks import Check
from servo.define.conditions import AllOf, AnyOf, Condition, Cron, Is, Not
from servo.define.dependencies import In
from servo.define.io import io_name
from servo.define.settings import Freshness, Resources, Retry, Secret, causes
from servo.define.validation import INT32, flag, listed, of_kind, text, texts, whole, words
from servo.errors import InvalidValue
from servo.v1 import code_pb2, common_pb2, condition_pb2, manifest_pb2

from . import checks, partitions
from .entry_points import EntryPoints
from .values import config_json, duration, secret


def maker(
    asset: Asset[..., Any],
    inputs: Sequence[tuple[str, str, In]],
    asset_checks: Sequence[Check],
    entry_points: EntryPoints,
) -> manifest_pb2.AssetDefinition:
    """The output that names the task. ``inputs`` are parameter, key of the dependency, and its settings."""
    settings = asset.settings
    message = _described(asset.outputs[0], settings, entry_points)
    module, function = entry_points.of_definition(asset)
    message.code.CopyFrom(code_pb2.CodeRef(entry_point=code_pb2.EntryPoint(module=module, function=function)))
    message.dependencies.extend(_dependency(*given) for given in inputs)
    message.checks.extend(checks.definition(check, entry_points) for check in asset_checks)
    message.secrets.extend(secret(given) for given in listed("secrets", settings.secrets, Secret, "secrets"))
    message.config_json = config_json(settings.config)
    message.quarantine = flag("quarantine", settings.quarantine)
    message.pool, message.priority = text("pool", settings.pool), whole("priority", settings.priority, INT32)
    message.may_skip = flag("may_skip", settings.may_skip)
    message.yields_items = flag("yields_items", settings.yields_items)
    message.isolated = settings.isolation == "fresh"
    _set_limits(message, settings)
    if settings.automation is not None:
        message.automation.CopyFrom(_condition(settings.automation))
    return message


def further_output(asset: Asset[..., Any], output: Output, entry_points: EntryPoints) -> manifest_pb2.AssetDefinition:
    """A further output of the same task."""
    message = _described(output, asset.settings, entry_points)
    message.made_by = str(asset.key)
    return message


def source(given: Source) -> manifest_pb2.AssetDefinition:
    return manifest_pb2.AssetDefinition(
        key=str(given.key),
        description=text("description", given.description),
        owners=words("owners", given.owners),
        tags=texts("tags", given.tags),
        source=True,
        partitions=partitions.definition(given.partitions),
        freshness=_freshness(given.freshness),
        io=io_name(given.io),
    )


def _described(output: Output, settings: Settings, entry_points: EntryPoints) -> manifest_pb2.AssetDefinition:
    return manifest_pb2.AssetDefinition(
        key=str(output.key),
        description=text("description", output.description),
        owners=words("owners", settings.owners),
        tags={**texts("tags", settings.tags), **texts("tags", output.tags)},
        partitions=partitions.definition(settings.partitions),
        freshness=_freshness(settings.freshness),
        code_version=text("code_version", settings.code_version),
        io=entry_points.io(output.io or settings.io),
    )


def _set_limits(message: manifest_pb2.AssetDefinition, settings: Settings) -> None:
    retry = Retry.of(settings.retry, causes("retry_on", settings.retry_on))
    if retry is not None:
        message.retry.CopyFrom(_retry(retry))
    if settings.resources is not None:
        message.resources.CopyFrom(_resources(settings.resources))
    if settings.timeout is not None or settings.heartbeat_timeout is not None:
        timeouts = common_pb2.Timeouts(
            execution=duration(settings.timeout, "timeout"),
            heartbeat=duration(settings.heartbeat_timeout, "heartbeat_timeout"),
        )
        message.timeouts.CopyFrom(timeouts)


def _dependency(parameter: str, upstream: str, given: In) -> manifest_pb2.Dependency:
    return manifest_pb2.Dependency(
        upstream=upstream,
        parameter=parameter,
        mapping=partitions.mapping(given.mapping),
        optional=flag("optional", given.optional),
        mapped=flag("each", given.each),
    )


def _retry(given: Retry) -> common_pb2.RetryPolicy:
    return common_pb2.RetryPolicy(
        max_attempts=given.attempts,
        backoff=f"BACKOFF_{given.backoff.upper()}" if given.backoff else None,
        initial_delay=duration(given.delay, "delay"),
        max_delay=duration(given.max_delay, "max_delay"),
        retry_on_categories=[f"ERROR_CATEGORY_{category.name}" for category in given.categories],
        retry_on_types=given.types,
        never_on_types=given.never_types,
    )


def _resources(given: Resources) -> common_pb2.Resources:
    of_kind("resources", given, Resources, "Resources(cpu=…, memory=…)")
    return common_pb2.Resources(
        cpu_millicores=given.cpu_millicores,
        memory_bytes=given.memory_bytes,
        gpus=given.gpus,
        capabilities=given.capabilities,
    )


def _freshness(given: Freshness | None) -> manifest_pb2.FreshnessPolicy | None:
    if given is None:
        return None
    of_kind("freshness", given, Freshness, "Freshness(max_age=…)")
    return manifest_pb2.FreshnessPolicy(
        max_age=duration(given.max_age, "max_age"),
        deadline_cron=text("deadline_cron", given.deadline_cron),
        time_zone=text("zone", given.zone),
    )


def _condition(given: Condition) -> condition_pb2.AutomationCondition:
    match given:
        case Is(fact):
            message = condition_pb2.AutomationCondition()
            setattr(message, fact, True)
            return message
        case AllOf(conditions):
            return condition_pb2.AutomationCondition(all_of=_list(conditions))
        case AnyOf(conditions):
            return condition_pb2.AutomationCondition(any_of=_list(conditions))
        case Not(condition):
            return condition_pb2.AutomationCondition(negated=_condition(condition))
        case Cron(cron, zone):
            return condition_pb2.AutomationCondition(cron=condition_pb2.CronCondition(cron=cron, time_zone=zone))
        case _:
            raise InvalidValue(f"{given!r} is not a condition; combine those of servo.conditions")


def _list(conditions: Sequence[Condition]) -> condition_pb2.ConditionList:
    return condition_pb2.ConditionList(conditions=[_condition(each) for each in conditions])
