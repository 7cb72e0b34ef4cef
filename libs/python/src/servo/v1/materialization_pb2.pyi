import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import common_pb2 as _common_pb2
from servo.v1 import quality_pb2 as _quality_pb2
from servo.v1 import state_pb2 as _state_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PartitionState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PARTITION_STATE_UNSPECIFIED: _ClassVar[PartitionState]
    PARTITION_STATE_MISSING: _ClassVar[PartitionState]
    PARTITION_STATE_IN_PROGRESS: _ClassVar[PartitionState]
    PARTITION_STATE_UP_TO_DATE: _ClassVar[PartitionState]
    PARTITION_STATE_STALE: _ClassVar[PartitionState]
    PARTITION_STATE_FAILED: _ClassVar[PartitionState]
    PARTITION_STATE_QUARANTINED: _ClassVar[PartitionState]

class StaleReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STALE_REASON_UNSPECIFIED: _ClassVar[StaleReason]
    STALE_REASON_UPSTREAM_CHANGED: _ClassVar[StaleReason]
    STALE_REASON_UPSTREAM_STALE: _ClassVar[StaleReason]
    STALE_REASON_CODE_CHANGED: _ClassVar[StaleReason]
    STALE_REASON_TOO_OLD: _ClassVar[StaleReason]
PARTITION_STATE_UNSPECIFIED: PartitionState
PARTITION_STATE_MISSING: PartitionState
PARTITION_STATE_IN_PROGRESS: PartitionState
PARTITION_STATE_UP_TO_DATE: PartitionState
PARTITION_STATE_STALE: PartitionState
PARTITION_STATE_FAILED: PartitionState
PARTITION_STATE_QUARANTINED: PartitionState
STALE_REASON_UNSPECIFIED: StaleReason
STALE_REASON_UPSTREAM_CHANGED: StaleReason
STALE_REASON_UPSTREAM_STALE: StaleReason
STALE_REASON_CODE_CHANGED: StaleReason
STALE_REASON_TOO_OLD: StaleReason

class Output(_message.Message):
    __slots__ = ("asset_key", "partition_key", "uri", "commit_digest", "row_count", "byte_size", "schema_hash", "code_version", "metadata", "inputs", "gating")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ASSET_KEY_FIELD_NUMBER: _ClassVar[int]
    PARTITION_KEY_FIELD_NUMBER: _ClassVar[int]
    URI_FIELD_NUMBER: _ClassVar[int]
    COMMIT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    ROW_COUNT_FIELD_NUMBER: _ClassVar[int]
    BYTE_SIZE_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_HASH_FIELD_NUMBER: _ClassVar[int]
    CODE_VERSION_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    GATING_FIELD_NUMBER: _ClassVar[int]
    asset_key: str
    partition_key: str
    uri: str
    commit_digest: str
    row_count: int
    byte_size: int
    schema_hash: str
    code_version: str
    metadata: _containers.ScalarMap[str, str]
    inputs: _containers.RepeatedCompositeFieldContainer[InputVersion]
    gating: _quality_pb2.Gating
    def __init__(self, asset_key: _Optional[str] = ..., partition_key: _Optional[str] = ..., uri: _Optional[str] = ..., commit_digest: _Optional[str] = ..., row_count: _Optional[int] = ..., byte_size: _Optional[int] = ..., schema_hash: _Optional[str] = ..., code_version: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., inputs: _Optional[_Iterable[_Union[InputVersion, _Mapping]]] = ..., gating: _Optional[_Union[_quality_pb2.Gating, str]] = ...) -> None: ...

class InputVersion(_message.Message):
    __slots__ = ("asset_key", "partition_key", "materialization_id")
    ASSET_KEY_FIELD_NUMBER: _ClassVar[int]
    PARTITION_KEY_FIELD_NUMBER: _ClassVar[int]
    MATERIALIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    asset_key: str
    partition_key: str
    materialization_id: str
    def __init__(self, asset_key: _Optional[str] = ..., partition_key: _Optional[str] = ..., materialization_id: _Optional[str] = ...) -> None: ...

class Materialization(_message.Message):
    __slots__ = ("materialization_id", "output", "state", "gating", "run_id", "task_id", "deployment_id", "record_time", "promote_time", "resolved_by", "version")
    MATERIALIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    GATING_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_ID_FIELD_NUMBER: _ClassVar[int]
    RECORD_TIME_FIELD_NUMBER: _ClassVar[int]
    PROMOTE_TIME_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_BY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    materialization_id: str
    output: Output
    state: _state_pb2.MaterializationState
    gating: _quality_pb2.Gating
    run_id: str
    task_id: str
    deployment_id: str
    record_time: _timestamp_pb2.Timestamp
    promote_time: _timestamp_pb2.Timestamp
    resolved_by: _common_pb2.Actor
    version: int
    def __init__(self, materialization_id: _Optional[str] = ..., output: _Optional[_Union[Output, _Mapping]] = ..., state: _Optional[_Union[_state_pb2.MaterializationState, str]] = ..., gating: _Optional[_Union[_quality_pb2.Gating, str]] = ..., run_id: _Optional[str] = ..., task_id: _Optional[str] = ..., deployment_id: _Optional[str] = ..., record_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., promote_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., resolved_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ..., version: _Optional[int] = ...) -> None: ...

class CheckRecord(_message.Message):
    __slots__ = ("result", "asset_key", "partition_key", "materialization_id", "run_id", "task_id", "record_time")
    RESULT_FIELD_NUMBER: _ClassVar[int]
    ASSET_KEY_FIELD_NUMBER: _ClassVar[int]
    PARTITION_KEY_FIELD_NUMBER: _ClassVar[int]
    MATERIALIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    RECORD_TIME_FIELD_NUMBER: _ClassVar[int]
    result: _quality_pb2.CheckResult
    asset_key: str
    partition_key: str
    materialization_id: str
    run_id: str
    task_id: str
    record_time: _timestamp_pb2.Timestamp
    def __init__(self, result: _Optional[_Union[_quality_pb2.CheckResult, _Mapping]] = ..., asset_key: _Optional[str] = ..., partition_key: _Optional[str] = ..., materialization_id: _Optional[str] = ..., run_id: _Optional[str] = ..., task_id: _Optional[str] = ..., record_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Partition(_message.Message):
    __slots__ = ("asset_key", "partition_key", "state", "materialization_id", "materialize_time", "materialize_run_id", "code_version", "last_attempt_id", "last_attempt_time", "last_attempt_run_id", "last_attempt_outcome", "stale_causes", "stale_since")
    ASSET_KEY_FIELD_NUMBER: _ClassVar[int]
    PARTITION_KEY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    MATERIALIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    MATERIALIZE_TIME_FIELD_NUMBER: _ClassVar[int]
    MATERIALIZE_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    CODE_VERSION_FIELD_NUMBER: _ClassVar[int]
    LAST_ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_ATTEMPT_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_ATTEMPT_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_ATTEMPT_OUTCOME_FIELD_NUMBER: _ClassVar[int]
    STALE_CAUSES_FIELD_NUMBER: _ClassVar[int]
    STALE_SINCE_FIELD_NUMBER: _ClassVar[int]
    asset_key: str
    partition_key: str
    state: PartitionState
    materialization_id: str
    materialize_time: _timestamp_pb2.Timestamp
    materialize_run_id: str
    code_version: str
    last_attempt_id: str
    last_attempt_time: _timestamp_pb2.Timestamp
    last_attempt_run_id: str
    last_attempt_outcome: _state_pb2.Outcome
    stale_causes: _containers.RepeatedCompositeFieldContainer[StaleCause]
    stale_since: _timestamp_pb2.Timestamp
    def __init__(self, asset_key: _Optional[str] = ..., partition_key: _Optional[str] = ..., state: _Optional[_Union[PartitionState, str]] = ..., materialization_id: _Optional[str] = ..., materialize_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., materialize_run_id: _Optional[str] = ..., code_version: _Optional[str] = ..., last_attempt_id: _Optional[str] = ..., last_attempt_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_attempt_run_id: _Optional[str] = ..., last_attempt_outcome: _Optional[_Union[_state_pb2.Outcome, str]] = ..., stale_causes: _Optional[_Iterable[_Union[StaleCause, _Mapping]]] = ..., stale_since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class StaleCause(_message.Message):
    __slots__ = ("reason", "asset_key", "partition_key")
    REASON_FIELD_NUMBER: _ClassVar[int]
    ASSET_KEY_FIELD_NUMBER: _ClassVar[int]
    PARTITION_KEY_FIELD_NUMBER: _ClassVar[int]
    reason: StaleReason
    asset_key: str
    partition_key: str
    def __init__(self, reason: _Optional[_Union[StaleReason, str]] = ..., asset_key: _Optional[str] = ..., partition_key: _Optional[str] = ...) -> None: ...

class MappedItems(_message.Message):
    __slots__ = ("count", "items_json", "uri")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    ITEMS_JSON_FIELD_NUMBER: _ClassVar[int]
    URI_FIELD_NUMBER: _ClassVar[int]
    count: int
    items_json: _containers.RepeatedScalarFieldContainer[str]
    uri: str
    def __init__(self, count: _Optional[int] = ..., items_json: _Optional[_Iterable[str]] = ..., uri: _Optional[str] = ...) -> None: ...
