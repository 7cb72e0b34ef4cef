import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import common_pb2 as _common_pb2
from servo.v1 import event_automation_pb2 as _event_automation_pb2
from servo.v1 import event_execution_pb2 as _event_execution_pb2
from servo.v1 import event_platform_pb2 as _event_platform_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Event(_message.Message):
    __slots__ = ("version", "trace", "run_requested", "plan_created", "plan_failed", "dispatch_requested", "dispatch_enqueued", "task_started", "task_finished", "timer_fired", "run_cancel_requested", "run_paused", "run_resumed", "task_force_cancelled", "quarantine_resolved", "dispatch_paused", "dispatch_resumed", "worker_commanded", "schedule_defined", "schedule_ticked", "sensor_defined", "sensor_evaluated", "backfill_created", "backfill_chunk_planned", "backfill_state_changed", "deployment_registered", "dynamic_partitions_changed", "quota_changed")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    RUN_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    PLAN_CREATED_FIELD_NUMBER: _ClassVar[int]
    PLAN_FAILED_FIELD_NUMBER: _ClassVar[int]
    DISPATCH_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    DISPATCH_ENQUEUED_FIELD_NUMBER: _ClassVar[int]
    TASK_STARTED_FIELD_NUMBER: _ClassVar[int]
    TASK_FINISHED_FIELD_NUMBER: _ClassVar[int]
    TIMER_FIRED_FIELD_NUMBER: _ClassVar[int]
    RUN_CANCEL_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    RUN_PAUSED_FIELD_NUMBER: _ClassVar[int]
    RUN_RESUMED_FIELD_NUMBER: _ClassVar[int]
    TASK_FORCE_CANCELLED_FIELD_NUMBER: _ClassVar[int]
    QUARANTINE_RESOLVED_FIELD_NUMBER: _ClassVar[int]
    DISPATCH_PAUSED_FIELD_NUMBER: _ClassVar[int]
    DISPATCH_RESUMED_FIELD_NUMBER: _ClassVar[int]
    WORKER_COMMANDED_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_DEFINED_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_TICKED_FIELD_NUMBER: _ClassVar[int]
    SENSOR_DEFINED_FIELD_NUMBER: _ClassVar[int]
    SENSOR_EVALUATED_FIELD_NUMBER: _ClassVar[int]
    BACKFILL_CREATED_FIELD_NUMBER: _ClassVar[int]
    BACKFILL_CHUNK_PLANNED_FIELD_NUMBER: _ClassVar[int]
    BACKFILL_STATE_CHANGED_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_REGISTERED_FIELD_NUMBER: _ClassVar[int]
    DYNAMIC_PARTITIONS_CHANGED_FIELD_NUMBER: _ClassVar[int]
    QUOTA_CHANGED_FIELD_NUMBER: _ClassVar[int]
    version: int
    trace: _common_pb2.TraceContext
    run_requested: _event_execution_pb2.RunRequested
    plan_created: _event_execution_pb2.PlanCreated
    plan_failed: _event_execution_pb2.PlanFailed
    dispatch_requested: _event_execution_pb2.DispatchRequested
    dispatch_enqueued: _event_execution_pb2.DispatchEnqueued
    task_started: _event_execution_pb2.TaskStarted
    task_finished: _event_execution_pb2.TaskFinished
    timer_fired: _event_execution_pb2.TimerFired
    run_cancel_requested: _event_execution_pb2.RunCancelRequested
    run_paused: _event_execution_pb2.RunPaused
    run_resumed: _event_execution_pb2.RunResumed
    task_force_cancelled: _event_execution_pb2.TaskForceCancelled
    quarantine_resolved: _event_execution_pb2.QuarantineResolved
    dispatch_paused: _event_platform_pb2.DispatchPaused
    dispatch_resumed: _event_platform_pb2.DispatchResumed
    worker_commanded: _event_platform_pb2.WorkerCommanded
    schedule_defined: _event_automation_pb2.ScheduleDefined
    schedule_ticked: _event_automation_pb2.ScheduleTicked
    sensor_defined: _event_automation_pb2.SensorDefined
    sensor_evaluated: _event_automation_pb2.SensorEvaluated
    backfill_created: _event_automation_pb2.BackfillCreated
    backfill_chunk_planned: _event_automation_pb2.BackfillChunkPlanned
    backfill_state_changed: _event_automation_pb2.BackfillStateChanged
    deployment_registered: _event_platform_pb2.DeploymentRegistered
    dynamic_partitions_changed: _event_platform_pb2.DynamicPartitionsChanged
    quota_changed: _event_platform_pb2.QuotaChanged
    def __init__(self, version: _Optional[int] = ..., trace: _Optional[_Union[_common_pb2.TraceContext, _Mapping]] = ..., run_requested: _Optional[_Union[_event_execution_pb2.RunRequested, _Mapping]] = ..., plan_created: _Optional[_Union[_event_execution_pb2.PlanCreated, _Mapping]] = ..., plan_failed: _Optional[_Union[_event_execution_pb2.PlanFailed, _Mapping]] = ..., dispatch_requested: _Optional[_Union[_event_execution_pb2.DispatchRequested, _Mapping]] = ..., dispatch_enqueued: _Optional[_Union[_event_execution_pb2.DispatchEnqueued, _Mapping]] = ..., task_started: _Optional[_Union[_event_execution_pb2.TaskStarted, _Mapping]] = ..., task_finished: _Optional[_Union[_event_execution_pb2.TaskFinished, _Mapping]] = ..., timer_fired: _Optional[_Union[_event_execution_pb2.TimerFired, _Mapping]] = ..., run_cancel_requested: _Optional[_Union[_event_execution_pb2.RunCancelRequested, _Mapping]] = ..., run_paused: _Optional[_Union[_event_execution_pb2.RunPaused, _Mapping]] = ..., run_resumed: _Optional[_Union[_event_execution_pb2.RunResumed, _Mapping]] = ..., task_force_cancelled: _Optional[_Union[_event_execution_pb2.TaskForceCancelled, _Mapping]] = ..., quarantine_resolved: _Optional[_Union[_event_execution_pb2.QuarantineResolved, _Mapping]] = ..., dispatch_paused: _Optional[_Union[_event_platform_pb2.DispatchPaused, _Mapping]] = ..., dispatch_resumed: _Optional[_Union[_event_platform_pb2.DispatchResumed, _Mapping]] = ..., worker_commanded: _Optional[_Union[_event_platform_pb2.WorkerCommanded, _Mapping]] = ..., schedule_defined: _Optional[_Union[_event_automation_pb2.ScheduleDefined, _Mapping]] = ..., schedule_ticked: _Optional[_Union[_event_automation_pb2.ScheduleTicked, _Mapping]] = ..., sensor_defined: _Optional[_Union[_event_automation_pb2.SensorDefined, _Mapping]] = ..., sensor_evaluated: _Optional[_Union[_event_automation_pb2.SensorEvaluated, _Mapping]] = ..., backfill_created: _Optional[_Union[_event_automation_pb2.BackfillCreated, _Mapping]] = ..., backfill_chunk_planned: _Optional[_Union[_event_automation_pb2.BackfillChunkPlanned, _Mapping]] = ..., backfill_state_changed: _Optional[_Union[_event_automation_pb2.BackfillStateChanged, _Mapping]] = ..., deployment_registered: _Optional[_Union[_event_platform_pb2.DeploymentRegistered, _Mapping]] = ..., dynamic_partitions_changed: _Optional[_Union[_event_platform_pb2.DynamicPartitionsChanged, _Mapping]] = ..., quota_changed: _Optional[_Union[_event_platform_pb2.QuotaChanged, _Mapping]] = ...) -> None: ...

class EventRecord(_message.Message):
    __slots__ = ("event_id", "stream", "shard", "position", "type", "tenant", "workspace", "record_time", "source", "idempotency_key", "correlation_id", "causation_id", "event", "task_key")
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    RECORD_TIME_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    CORRELATION_ID_FIELD_NUMBER: _ClassVar[int]
    CAUSATION_ID_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    TASK_KEY_FIELD_NUMBER: _ClassVar[int]
    event_id: str
    stream: str
    shard: int
    position: int
    type: str
    tenant: str
    workspace: str
    record_time: _timestamp_pb2.Timestamp
    source: str
    idempotency_key: str
    correlation_id: str
    causation_id: str
    event: Event
    task_key: str
    def __init__(self, event_id: _Optional[str] = ..., stream: _Optional[str] = ..., shard: _Optional[int] = ..., position: _Optional[int] = ..., type: _Optional[str] = ..., tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., record_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., source: _Optional[str] = ..., idempotency_key: _Optional[str] = ..., correlation_id: _Optional[str] = ..., causation_id: _Optional[str] = ..., event: _Optional[_Union[Event, _Mapping]] = ..., task_key: _Optional[str] = ...) -> None: ...
