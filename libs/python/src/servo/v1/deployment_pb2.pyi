import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import common_pb2 as _common_pb2
from servo.v1 import manifest_pb2 as _manifest_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DefinitionKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DEFINITION_KIND_UNSPECIFIED: _ClassVar[DefinitionKind]
    DEFINITION_KIND_ASSET: _ClassVar[DefinitionKind]
    DEFINITION_KIND_SCHEDULE: _ClassVar[DefinitionKind]
    DEFINITION_KIND_SENSOR: _ClassVar[DefinitionKind]

class ChangeKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHANGE_KIND_UNSPECIFIED: _ClassVar[ChangeKind]
    CHANGE_KIND_ADDED: _ClassVar[ChangeKind]
    CHANGE_KIND_CHANGED: _ClassVar[ChangeKind]
    CHANGE_KIND_REMOVED: _ClassVar[ChangeKind]
DEFINITION_KIND_UNSPECIFIED: DefinitionKind
DEFINITION_KIND_ASSET: DefinitionKind
DEFINITION_KIND_SCHEDULE: DefinitionKind
DEFINITION_KIND_SENSOR: DefinitionKind
CHANGE_KIND_UNSPECIFIED: ChangeKind
CHANGE_KIND_ADDED: ChangeKind
CHANGE_KIND_CHANGED: ChangeKind
CHANGE_KIND_REMOVED: ChangeKind

class Deployment(_message.Message):
    __slots__ = ("deployment_id", "version", "manifest_digest", "artifact_digest", "code_version", "labels", "asset_count", "schedule_count", "sensor_count", "current", "deploy_time", "deployed_by")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    DEPLOYMENT_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_DIGEST_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    CODE_VERSION_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    ASSET_COUNT_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_COUNT_FIELD_NUMBER: _ClassVar[int]
    SENSOR_COUNT_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    DEPLOY_TIME_FIELD_NUMBER: _ClassVar[int]
    DEPLOYED_BY_FIELD_NUMBER: _ClassVar[int]
    deployment_id: str
    version: int
    manifest_digest: str
    artifact_digest: str
    code_version: str
    labels: _containers.ScalarMap[str, str]
    asset_count: int
    schedule_count: int
    sensor_count: int
    current: bool
    deploy_time: _timestamp_pb2.Timestamp
    deployed_by: _common_pb2.Actor
    def __init__(self, deployment_id: _Optional[str] = ..., version: _Optional[int] = ..., manifest_digest: _Optional[str] = ..., artifact_digest: _Optional[str] = ..., code_version: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., asset_count: _Optional[int] = ..., schedule_count: _Optional[int] = ..., sensor_count: _Optional[int] = ..., current: bool = ..., deploy_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., deployed_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ...) -> None: ...

class DeploymentDiff(_message.Message):
    __slots__ = ("changes", "stale_partitions")
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    STALE_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    changes: _containers.RepeatedCompositeFieldContainer[DefinitionChange]
    stale_partitions: int
    def __init__(self, changes: _Optional[_Iterable[_Union[DefinitionChange, _Mapping]]] = ..., stale_partitions: _Optional[int] = ...) -> None: ...

class DefinitionChange(_message.Message):
    __slots__ = ("kind", "key", "change", "fields", "makes_stale")
    KIND_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    MAKES_STALE_FIELD_NUMBER: _ClassVar[int]
    kind: DefinitionKind
    key: str
    change: ChangeKind
    fields: _containers.RepeatedCompositeFieldContainer[FieldChange]
    makes_stale: bool
    def __init__(self, kind: _Optional[_Union[DefinitionKind, str]] = ..., key: _Optional[str] = ..., change: _Optional[_Union[ChangeKind, str]] = ..., fields: _Optional[_Iterable[_Union[FieldChange, _Mapping]]] = ..., makes_stale: bool = ...) -> None: ...

class FieldChange(_message.Message):
    __slots__ = ("path", "before_json", "after_json")
    PATH_FIELD_NUMBER: _ClassVar[int]
    BEFORE_JSON_FIELD_NUMBER: _ClassVar[int]
    AFTER_JSON_FIELD_NUMBER: _ClassVar[int]
    path: str
    before_json: str
    after_json: str
    def __init__(self, path: _Optional[str] = ..., before_json: _Optional[str] = ..., after_json: _Optional[str] = ...) -> None: ...

class Asset(_message.Message):
    __slots__ = ("asset_key", "definition", "deployment_id", "upstream_keys", "downstream_keys", "partition_count")
    ASSET_KEY_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_ID_FIELD_NUMBER: _ClassVar[int]
    UPSTREAM_KEYS_FIELD_NUMBER: _ClassVar[int]
    DOWNSTREAM_KEYS_FIELD_NUMBER: _ClassVar[int]
    PARTITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    asset_key: str
    definition: _manifest_pb2.AssetDefinition
    deployment_id: str
    upstream_keys: _containers.RepeatedScalarFieldContainer[str]
    downstream_keys: _containers.RepeatedScalarFieldContainer[str]
    partition_count: int
    def __init__(self, asset_key: _Optional[str] = ..., definition: _Optional[_Union[_manifest_pb2.AssetDefinition, _Mapping]] = ..., deployment_id: _Optional[str] = ..., upstream_keys: _Optional[_Iterable[str]] = ..., downstream_keys: _Optional[_Iterable[str]] = ..., partition_count: _Optional[int] = ...) -> None: ...

class LineageEdge(_message.Message):
    __slots__ = ("upstream_key", "downstream_key", "mapped", "optional")
    UPSTREAM_KEY_FIELD_NUMBER: _ClassVar[int]
    DOWNSTREAM_KEY_FIELD_NUMBER: _ClassVar[int]
    MAPPED_FIELD_NUMBER: _ClassVar[int]
    OPTIONAL_FIELD_NUMBER: _ClassVar[int]
    upstream_key: str
    downstream_key: str
    mapped: bool
    optional: bool
    def __init__(self, upstream_key: _Optional[str] = ..., downstream_key: _Optional[str] = ..., mapped: bool = ..., optional: bool = ...) -> None: ...

class DynamicPartition(_message.Message):
    __slots__ = ("value", "create_time")
    VALUE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    value: str
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, value: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
