import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import backfill_model_pb2 as _backfill_model_pb2
from servo.v1 import common_pb2 as _common_pb2
from servo.v1 import partition_pb2 as _partition_pb2
from servo.v1 import run_spec_pb2 as _run_spec_pb2
from servo.v1 import schedule_pb2 as _schedule_pb2
from servo.v1 import sensor_pb2 as _sensor_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ScheduleDefined(_message.Message):
    __slots__ = ("schedule_id", "version", "definition", "state", "deployment_id", "updated_by")
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_ID_FIELD_NUMBER: _ClassVar[int]
    UPDATED_BY_FIELD_NUMBER: _ClassVar[int]
    schedule_id: str
    version: int
    definition: _schedule_pb2.ScheduleDefinition
    state: _schedule_pb2.AutomationState
    deployment_id: str
    updated_by: _common_pb2.Actor
    def __init__(self, schedule_id: _Optional[str] = ..., version: _Optional[int] = ..., definition: _Optional[_Union[_schedule_pb2.ScheduleDefinition, _Mapping]] = ..., state: _Optional[_Union[_schedule_pb2.AutomationState, str]] = ..., deployment_id: _Optional[str] = ..., updated_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ...) -> None: ...

class ScheduleTicked(_message.Message):
    __slots__ = ("schedule_id", "tick_id", "scheduled_time", "definition_version", "cause", "outcome", "detail", "run", "run_key", "run_id", "request_fingerprint")
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    TICK_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_TIME_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_VERSION_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    RUN_KEY_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    schedule_id: str
    tick_id: str
    scheduled_time: _timestamp_pb2.Timestamp
    definition_version: int
    cause: _schedule_pb2.TickCause
    outcome: _schedule_pb2.TickOutcome
    detail: str
    run: _run_spec_pb2.RunSpec
    run_key: str
    run_id: str
    request_fingerprint: str
    def __init__(self, schedule_id: _Optional[str] = ..., tick_id: _Optional[str] = ..., scheduled_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., definition_version: _Optional[int] = ..., cause: _Optional[_Union[_schedule_pb2.TickCause, str]] = ..., outcome: _Optional[_Union[_schedule_pb2.TickOutcome, str]] = ..., detail: _Optional[str] = ..., run: _Optional[_Union[_run_spec_pb2.RunSpec, _Mapping]] = ..., run_key: _Optional[str] = ..., run_id: _Optional[str] = ..., request_fingerprint: _Optional[str] = ...) -> None: ...

class SensorDefined(_message.Message):
    __slots__ = ("sensor_id", "version", "definition", "state", "deployment_id", "updated_by", "cursor_reset", "state_version")
    SENSOR_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_ID_FIELD_NUMBER: _ClassVar[int]
    UPDATED_BY_FIELD_NUMBER: _ClassVar[int]
    CURSOR_RESET_FIELD_NUMBER: _ClassVar[int]
    STATE_VERSION_FIELD_NUMBER: _ClassVar[int]
    sensor_id: str
    version: int
    definition: _sensor_pb2.SensorDefinition
    state: _schedule_pb2.AutomationState
    deployment_id: str
    updated_by: _common_pb2.Actor
    cursor_reset: str
    state_version: int
    def __init__(self, sensor_id: _Optional[str] = ..., version: _Optional[int] = ..., definition: _Optional[_Union[_sensor_pb2.SensorDefinition, _Mapping]] = ..., state: _Optional[_Union[_schedule_pb2.AutomationState, str]] = ..., deployment_id: _Optional[str] = ..., updated_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ..., cursor_reset: _Optional[str] = ..., state_version: _Optional[int] = ...) -> None: ...

class SensorEvaluated(_message.Message):
    __slots__ = ("sensor_id", "evaluation_id", "definition_version", "expected_state_version", "message_id", "poll_epoch", "cursor_before", "cursor_after", "outcome", "detail", "runs", "poll_run_id")
    SENSOR_ID_FIELD_NUMBER: _ClassVar[int]
    EVALUATION_ID_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_VERSION_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_STATE_VERSION_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    POLL_EPOCH_FIELD_NUMBER: _ClassVar[int]
    CURSOR_BEFORE_FIELD_NUMBER: _ClassVar[int]
    CURSOR_AFTER_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    POLL_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    sensor_id: str
    evaluation_id: str
    definition_version: int
    expected_state_version: int
    message_id: str
    poll_epoch: int
    cursor_before: str
    cursor_after: str
    outcome: _sensor_pb2.EvaluationOutcome
    detail: str
    runs: _containers.RepeatedCompositeFieldContainer[_sensor_pb2.RunRequest]
    poll_run_id: str
    def __init__(self, sensor_id: _Optional[str] = ..., evaluation_id: _Optional[str] = ..., definition_version: _Optional[int] = ..., expected_state_version: _Optional[int] = ..., message_id: _Optional[str] = ..., poll_epoch: _Optional[int] = ..., cursor_before: _Optional[str] = ..., cursor_after: _Optional[str] = ..., outcome: _Optional[_Union[_sensor_pb2.EvaluationOutcome, str]] = ..., detail: _Optional[str] = ..., runs: _Optional[_Iterable[_Union[_sensor_pb2.RunRequest, _Mapping]]] = ..., poll_run_id: _Optional[str] = ...) -> None: ...

class BackfillCreated(_message.Message):
    __slots__ = ("backfill_id", "request_id", "spec", "deployment_id", "total_partitions", "total_chunks", "parent_backfill_id", "requested_by")
    BACKFILL_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_ID_FIELD_NUMBER: _ClassVar[int]
    TOTAL_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_CHUNKS_FIELD_NUMBER: _ClassVar[int]
    PARENT_BACKFILL_ID_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BY_FIELD_NUMBER: _ClassVar[int]
    backfill_id: str
    request_id: str
    spec: _backfill_model_pb2.BackfillSpec
    deployment_id: str
    total_partitions: int
    total_chunks: int
    parent_backfill_id: str
    requested_by: _common_pb2.Actor
    def __init__(self, backfill_id: _Optional[str] = ..., request_id: _Optional[str] = ..., spec: _Optional[_Union[_backfill_model_pb2.BackfillSpec, _Mapping]] = ..., deployment_id: _Optional[str] = ..., total_partitions: _Optional[int] = ..., total_chunks: _Optional[int] = ..., parent_backfill_id: _Optional[str] = ..., requested_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ...) -> None: ...

class BackfillChunkPlanned(_message.Message):
    __slots__ = ("backfill_id", "chunk_index", "partitions", "partition_count", "run_key", "run_id", "request_fingerprint")
    BACKFILL_ID_FIELD_NUMBER: _ClassVar[int]
    CHUNK_INDEX_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    PARTITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    RUN_KEY_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    backfill_id: str
    chunk_index: int
    partitions: _partition_pb2.PartitionSelection
    partition_count: int
    run_key: str
    run_id: str
    request_fingerprint: str
    def __init__(self, backfill_id: _Optional[str] = ..., chunk_index: _Optional[int] = ..., partitions: _Optional[_Union[_partition_pb2.PartitionSelection, _Mapping]] = ..., partition_count: _Optional[int] = ..., run_key: _Optional[str] = ..., run_id: _Optional[str] = ..., request_fingerprint: _Optional[str] = ...) -> None: ...

class BackfillStateChanged(_message.Message):
    __slots__ = ("backfill_id", "from_state", "to_state", "version", "reason", "detail", "requested_by")
    BACKFILL_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_STATE_FIELD_NUMBER: _ClassVar[int]
    TO_STATE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BY_FIELD_NUMBER: _ClassVar[int]
    backfill_id: str
    from_state: _backfill_model_pb2.BackfillState
    to_state: _backfill_model_pb2.BackfillState
    version: int
    reason: _backfill_model_pb2.BackfillReason
    detail: str
    requested_by: _common_pb2.Actor
    def __init__(self, backfill_id: _Optional[str] = ..., from_state: _Optional[_Union[_backfill_model_pb2.BackfillState, str]] = ..., to_state: _Optional[_Union[_backfill_model_pb2.BackfillState, str]] = ..., version: _Optional[int] = ..., reason: _Optional[_Union[_backfill_model_pb2.BackfillReason, str]] = ..., detail: _Optional[str] = ..., requested_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ...) -> None: ...
