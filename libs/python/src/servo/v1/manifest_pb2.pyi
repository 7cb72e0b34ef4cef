import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from servo.v1 import code_pb2 as _code_pb2
from servo.v1 import common_pb2 as _common_pb2
from servo.v1 import condition_pb2 as _condition_pb2
from servo.v1 import partition_pb2 as _partition_pb2
from servo.v1 import quality_pb2 as _quality_pb2
from servo.v1 import schedule_pb2 as _schedule_pb2
from servo.v1 import sensor_pb2 as _sensor_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Manifest(_message.Message):
    __slots__ = ("format", "code_version", "labels", "artifact", "assets", "schedules", "sensors")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    CODE_VERSION_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    ASSETS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    SENSORS_FIELD_NUMBER: _ClassVar[int]
    format: int
    code_version: str
    labels: _containers.ScalarMap[str, str]
    artifact: _code_pb2.CodeArtifact
    assets: _containers.RepeatedCompositeFieldContainer[AssetDefinition]
    schedules: _containers.RepeatedCompositeFieldContainer[_schedule_pb2.ScheduleDefinition]
    sensors: _containers.RepeatedCompositeFieldContainer[_sensor_pb2.SensorDefinition]
    def __init__(self, format: _Optional[int] = ..., code_version: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., artifact: _Optional[_Union[_code_pb2.CodeArtifact, _Mapping]] = ..., assets: _Optional[_Iterable[_Union[AssetDefinition, _Mapping]]] = ..., schedules: _Optional[_Iterable[_Union[_schedule_pb2.ScheduleDefinition, _Mapping]]] = ..., sensors: _Optional[_Iterable[_Union[_sensor_pb2.SensorDefinition, _Mapping]]] = ...) -> None: ...

class AssetDefinition(_message.Message):
    __slots__ = ("key", "description", "owners", "tags", "source", "dependencies", "partitions", "checks", "quarantine", "retry", "timeouts", "pool", "priority", "resources", "code", "config_json", "secrets", "freshness", "code_version", "automation", "made_by", "may_skip", "yields_items", "io", "isolated")
    class TagsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    KEY_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    OWNERS_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DEPENDENCIES_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    QUARANTINE_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    TIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    FRESHNESS_FIELD_NUMBER: _ClassVar[int]
    CODE_VERSION_FIELD_NUMBER: _ClassVar[int]
    AUTOMATION_FIELD_NUMBER: _ClassVar[int]
    MADE_BY_FIELD_NUMBER: _ClassVar[int]
    MAY_SKIP_FIELD_NUMBER: _ClassVar[int]
    YIELDS_ITEMS_FIELD_NUMBER: _ClassVar[int]
    IO_FIELD_NUMBER: _ClassVar[int]
    ISOLATED_FIELD_NUMBER: _ClassVar[int]
    key: str
    description: str
    owners: _containers.RepeatedScalarFieldContainer[str]
    tags: _containers.ScalarMap[str, str]
    source: bool
    dependencies: _containers.RepeatedCompositeFieldContainer[Dependency]
    partitions: _partition_pb2.PartitionsDefinition
    checks: _containers.RepeatedCompositeFieldContainer[_quality_pb2.CheckDefinition]
    quarantine: bool
    retry: _common_pb2.RetryPolicy
    timeouts: _common_pb2.Timeouts
    pool: str
    priority: int
    resources: _common_pb2.Resources
    code: _code_pb2.CodeRef
    config_json: str
    secrets: _containers.RepeatedCompositeFieldContainer[_common_pb2.SecretRef]
    freshness: FreshnessPolicy
    code_version: str
    automation: _condition_pb2.AutomationCondition
    made_by: str
    may_skip: bool
    yields_items: bool
    io: str
    isolated: bool
    def __init__(self, key: _Optional[str] = ..., description: _Optional[str] = ..., owners: _Optional[_Iterable[str]] = ..., tags: _Optional[_Mapping[str, str]] = ..., source: bool = ..., dependencies: _Optional[_Iterable[_Union[Dependency, _Mapping]]] = ..., partitions: _Optional[_Union[_partition_pb2.PartitionsDefinition, _Mapping]] = ..., checks: _Optional[_Iterable[_Union[_quality_pb2.CheckDefinition, _Mapping]]] = ..., quarantine: bool = ..., retry: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ..., timeouts: _Optional[_Union[_common_pb2.Timeouts, _Mapping]] = ..., pool: _Optional[str] = ..., priority: _Optional[int] = ..., resources: _Optional[_Union[_common_pb2.Resources, _Mapping]] = ..., code: _Optional[_Union[_code_pb2.CodeRef, _Mapping]] = ..., config_json: _Optional[str] = ..., secrets: _Optional[_Iterable[_Union[_common_pb2.SecretRef, _Mapping]]] = ..., freshness: _Optional[_Union[FreshnessPolicy, _Mapping]] = ..., code_version: _Optional[str] = ..., automation: _Optional[_Union[_condition_pb2.AutomationCondition, _Mapping]] = ..., made_by: _Optional[str] = ..., may_skip: bool = ..., yields_items: bool = ..., io: _Optional[str] = ..., isolated: bool = ...) -> None: ...

class Dependency(_message.Message):
    __slots__ = ("upstream", "parameter", "mapping", "optional", "mapped")
    UPSTREAM_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_FIELD_NUMBER: _ClassVar[int]
    MAPPING_FIELD_NUMBER: _ClassVar[int]
    OPTIONAL_FIELD_NUMBER: _ClassVar[int]
    MAPPED_FIELD_NUMBER: _ClassVar[int]
    upstream: str
    parameter: str
    mapping: _partition_pb2.PartitionMapping
    optional: bool
    mapped: bool
    def __init__(self, upstream: _Optional[str] = ..., parameter: _Optional[str] = ..., mapping: _Optional[_Union[_partition_pb2.PartitionMapping, _Mapping]] = ..., optional: bool = ..., mapped: bool = ...) -> None: ...

class FreshnessPolicy(_message.Message):
    __slots__ = ("max_age", "deadline_cron", "time_zone")
    MAX_AGE_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_CRON_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    max_age: _duration_pb2.Duration
    deadline_cron: str
    time_zone: str
    def __init__(self, max_age: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., deadline_cron: _Optional[str] = ..., time_zone: _Optional[str] = ...) -> None: ...
