import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import common_pb2 as _common_pb2
from servo.v1 import materialization_pb2 as _materialization_pb2
from servo.v1 import quality_pb2 as _quality_pb2
from servo.v1 import run_spec_pb2 as _run_spec_pb2
from servo.v1 import state_pb2 as _state_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Trigger(_message.Message):
    __slots__ = ("manual", "schedule", "sensor", "backfill", "condition")
    MANUAL_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    SENSOR_FIELD_NUMBER: _ClassVar[int]
    BACKFILL_FIELD_NUMBER: _ClassVar[int]
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    manual: ManualTrigger
    schedule: ScheduleTrigger
    sensor: SensorTrigger
    backfill: BackfillTrigger
    condition: ConditionTrigger
    def __init__(self, manual: _Optional[_Union[ManualTrigger, _Mapping]] = ..., schedule: _Optional[_Union[ScheduleTrigger, _Mapping]] = ..., sensor: _Optional[_Union[SensorTrigger, _Mapping]] = ..., backfill: _Optional[_Union[BackfillTrigger, _Mapping]] = ..., condition: _Optional[_Union[ConditionTrigger, _Mapping]] = ...) -> None: ...

class ManualTrigger(_message.Message):
    __slots__ = ("request_id", "body_digest")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    BODY_DIGEST_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    body_digest: str
    def __init__(self, request_id: _Optional[str] = ..., body_digest: _Optional[str] = ...) -> None: ...

class ScheduleTrigger(_message.Message):
    __slots__ = ("schedule_id", "tick_id")
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    TICK_ID_FIELD_NUMBER: _ClassVar[int]
    schedule_id: str
    tick_id: str
    def __init__(self, schedule_id: _Optional[str] = ..., tick_id: _Optional[str] = ...) -> None: ...

class SensorTrigger(_message.Message):
    __slots__ = ("sensor_id", "evaluation_id")
    SENSOR_ID_FIELD_NUMBER: _ClassVar[int]
    EVALUATION_ID_FIELD_NUMBER: _ClassVar[int]
    sensor_id: str
    evaluation_id: str
    def __init__(self, sensor_id: _Optional[str] = ..., evaluation_id: _Optional[str] = ...) -> None: ...

class BackfillTrigger(_message.Message):
    __slots__ = ("backfill_id", "chunk_index")
    BACKFILL_ID_FIELD_NUMBER: _ClassVar[int]
    CHUNK_INDEX_FIELD_NUMBER: _ClassVar[int]
    backfill_id: str
    chunk_index: int
    def __init__(self, backfill_id: _Optional[str] = ..., chunk_index: _Optional[int] = ...) -> None: ...

class ConditionTrigger(_message.Message):
    __slots__ = ("decision_id", "asset_key")
    DECISION_ID_FIELD_NUMBER: _ClassVar[int]
    ASSET_KEY_FIELD_NUMBER: _ClassVar[int]
    decision_id: str
    asset_key: str
    def __init__(self, decision_id: _Optional[str] = ..., asset_key: _Optional[str] = ...) -> None: ...

class Run(_message.Message):
    __slots__ = ("run_id", "run_key", "generation", "retry_of", "state", "reason", "spec", "trigger", "requested_by", "request_fingerprint", "plan_id", "plan_fingerprint", "deployment_id", "tasks", "flagged", "error", "set_aside_reason", "version", "create_time", "start_time", "end_time", "deadline")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_KEY_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    RETRY_OF_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    PLAN_ID_FIELD_NUMBER: _ClassVar[int]
    PLAN_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_ID_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    FLAGGED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    SET_ASIDE_REASON_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    run_key: str
    generation: int
    retry_of: str
    state: _state_pb2.RunState
    reason: _state_pb2.TransitionReason
    spec: _run_spec_pb2.RunSpec
    trigger: Trigger
    requested_by: _common_pb2.Actor
    request_fingerprint: str
    plan_id: str
    plan_fingerprint: str
    deployment_id: str
    tasks: _common_pb2.TaskCounts
    flagged: bool
    error: str
    set_aside_reason: str
    version: int
    create_time: _timestamp_pb2.Timestamp
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    deadline: _timestamp_pb2.Timestamp
    def __init__(self, run_id: _Optional[str] = ..., run_key: _Optional[str] = ..., generation: _Optional[int] = ..., retry_of: _Optional[str] = ..., state: _Optional[_Union[_state_pb2.RunState, str]] = ..., reason: _Optional[_Union[_state_pb2.TransitionReason, str]] = ..., spec: _Optional[_Union[_run_spec_pb2.RunSpec, _Mapping]] = ..., trigger: _Optional[_Union[Trigger, _Mapping]] = ..., requested_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ..., request_fingerprint: _Optional[str] = ..., plan_id: _Optional[str] = ..., plan_fingerprint: _Optional[str] = ..., deployment_id: _Optional[str] = ..., tasks: _Optional[_Union[_common_pb2.TaskCounts, _Mapping]] = ..., flagged: bool = ..., error: _Optional[str] = ..., set_aside_reason: _Optional[str] = ..., version: _Optional[int] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("task_id", "task_key", "run_id", "ref", "asset_key", "partition_key", "operation", "state", "reason", "attempt", "failures", "attempt_id", "worker_id", "cancelling", "upstream_task_ids", "error", "materialization_id", "mapped_count", "ready_time", "start_time", "end_time", "retry_time", "heartbeat_time", "pool", "priority", "progress_ppm", "progress_message")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_KEY_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REF_FIELD_NUMBER: _ClassVar[int]
    ASSET_KEY_FIELD_NUMBER: _ClassVar[int]
    PARTITION_KEY_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    CANCELLING_FIELD_NUMBER: _ClassVar[int]
    UPSTREAM_TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MATERIALIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    MAPPED_COUNT_FIELD_NUMBER: _ClassVar[int]
    READY_TIME_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    RETRY_TIME_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_TIME_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_PPM_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    task_key: str
    run_id: str
    ref: _common_pb2.TaskRef
    asset_key: str
    partition_key: str
    operation: _state_pb2.Operation
    state: _state_pb2.TaskState
    reason: _state_pb2.TransitionReason
    attempt: int
    failures: int
    attempt_id: str
    worker_id: str
    cancelling: bool
    upstream_task_ids: _containers.RepeatedScalarFieldContainer[str]
    error: _common_pb2.TaskError
    materialization_id: str
    mapped_count: int
    ready_time: _timestamp_pb2.Timestamp
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    retry_time: _timestamp_pb2.Timestamp
    heartbeat_time: _timestamp_pb2.Timestamp
    pool: str
    priority: int
    progress_ppm: int
    progress_message: str
    def __init__(self, task_id: _Optional[str] = ..., task_key: _Optional[str] = ..., run_id: _Optional[str] = ..., ref: _Optional[_Union[_common_pb2.TaskRef, _Mapping]] = ..., asset_key: _Optional[str] = ..., partition_key: _Optional[str] = ..., operation: _Optional[_Union[_state_pb2.Operation, str]] = ..., state: _Optional[_Union[_state_pb2.TaskState, str]] = ..., reason: _Optional[_Union[_state_pb2.TransitionReason, str]] = ..., attempt: _Optional[int] = ..., failures: _Optional[int] = ..., attempt_id: _Optional[str] = ..., worker_id: _Optional[str] = ..., cancelling: bool = ..., upstream_task_ids: _Optional[_Iterable[str]] = ..., error: _Optional[_Union[_common_pb2.TaskError, _Mapping]] = ..., materialization_id: _Optional[str] = ..., mapped_count: _Optional[int] = ..., ready_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., retry_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., heartbeat_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., pool: _Optional[str] = ..., priority: _Optional[int] = ..., progress_ppm: _Optional[int] = ..., progress_message: _Optional[str] = ...) -> None: ...

class Attempt(_message.Message):
    __slots__ = ("attempt_id", "attempt", "worker_id", "session", "outcome", "reason", "error", "usage", "outputs", "checks", "dispatch_time", "start_time", "end_time", "late", "skip_reason")
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    DISPATCH_TIME_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    SKIP_REASON_FIELD_NUMBER: _ClassVar[int]
    attempt_id: str
    attempt: int
    worker_id: str
    session: str
    outcome: _state_pb2.Outcome
    reason: _state_pb2.TransitionReason
    error: _common_pb2.TaskError
    usage: _common_pb2.Usage
    outputs: _containers.RepeatedCompositeFieldContainer[_materialization_pb2.Output]
    checks: _containers.RepeatedCompositeFieldContainer[_quality_pb2.CheckResult]
    dispatch_time: _timestamp_pb2.Timestamp
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    late: bool
    skip_reason: str
    def __init__(self, attempt_id: _Optional[str] = ..., attempt: _Optional[int] = ..., worker_id: _Optional[str] = ..., session: _Optional[str] = ..., outcome: _Optional[_Union[_state_pb2.Outcome, str]] = ..., reason: _Optional[_Union[_state_pb2.TransitionReason, str]] = ..., error: _Optional[_Union[_common_pb2.TaskError, _Mapping]] = ..., usage: _Optional[_Union[_common_pb2.Usage, _Mapping]] = ..., outputs: _Optional[_Iterable[_Union[_materialization_pb2.Output, _Mapping]]] = ..., checks: _Optional[_Iterable[_Union[_quality_pb2.CheckResult, _Mapping]]] = ..., dispatch_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., late: bool = ..., skip_reason: _Optional[str] = ...) -> None: ...

class TaskTransition(_message.Message):
    __slots__ = ("from_state", "to_state", "reason", "time", "event_id", "attempt", "detail")
    FROM_STATE_FIELD_NUMBER: _ClassVar[int]
    TO_STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    from_state: _state_pb2.TaskState
    to_state: _state_pb2.TaskState
    reason: _state_pb2.TransitionReason
    time: _timestamp_pb2.Timestamp
    event_id: str
    attempt: int
    detail: str
    def __init__(self, from_state: _Optional[_Union[_state_pb2.TaskState, str]] = ..., to_state: _Optional[_Union[_state_pb2.TaskState, str]] = ..., reason: _Optional[_Union[_state_pb2.TransitionReason, str]] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., event_id: _Optional[str] = ..., attempt: _Optional[int] = ..., detail: _Optional[str] = ...) -> None: ...

class RunTransition(_message.Message):
    __slots__ = ("from_state", "to_state", "reason", "time", "event_id", "detail")
    FROM_STATE_FIELD_NUMBER: _ClassVar[int]
    TO_STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    from_state: _state_pb2.RunState
    to_state: _state_pb2.RunState
    reason: _state_pb2.TransitionReason
    time: _timestamp_pb2.Timestamp
    event_id: str
    detail: str
    def __init__(self, from_state: _Optional[_Union[_state_pb2.RunState, str]] = ..., to_state: _Optional[_Union[_state_pb2.RunState, str]] = ..., reason: _Optional[_Union[_state_pb2.TransitionReason, str]] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., event_id: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...
