import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import common_pb2 as _common_pb2
from servo.v1 import error_pb2 as _error_pb2
from servo.v1 import materialization_pb2 as _materialization_pb2
from servo.v1 import quality_pb2 as _quality_pb2
from servo.v1 import run_pb2 as _run_pb2
from servo.v1 import run_spec_pb2 as _run_spec_pb2
from servo.v1 import sensor_pb2 as _sensor_pb2
from servo.v1 import state_pb2 as _state_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TimerKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TIMER_KIND_UNSPECIFIED: _ClassVar[TimerKind]
    TIMER_KIND_RETRY: _ClassVar[TimerKind]
    TIMER_KIND_DISPATCH_ACK: _ClassVar[TimerKind]
    TIMER_KIND_HEARTBEAT: _ClassVar[TimerKind]
    TIMER_KIND_EXECUTION: _ClassVar[TimerKind]
    TIMER_KIND_RUN_DURATION: _ClassVar[TimerKind]
TIMER_KIND_UNSPECIFIED: TimerKind
TIMER_KIND_RETRY: TimerKind
TIMER_KIND_DISPATCH_ACK: TimerKind
TIMER_KIND_HEARTBEAT: TimerKind
TIMER_KIND_EXECUTION: TimerKind
TIMER_KIND_RUN_DURATION: TimerKind

class RunRequested(_message.Message):
    __slots__ = ("run_id", "run_key", "request_fingerprint", "generation", "retry_of", "spec", "trigger", "requested_by", "max_duration", "plan_id", "plan_fingerprint")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_KEY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    RETRY_OF_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BY_FIELD_NUMBER: _ClassVar[int]
    MAX_DURATION_FIELD_NUMBER: _ClassVar[int]
    PLAN_ID_FIELD_NUMBER: _ClassVar[int]
    PLAN_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    run_key: str
    request_fingerprint: str
    generation: int
    retry_of: str
    spec: _run_spec_pb2.RunSpec
    trigger: _run_pb2.Trigger
    requested_by: _common_pb2.Actor
    max_duration: _duration_pb2.Duration
    plan_id: str
    plan_fingerprint: str
    def __init__(self, run_id: _Optional[str] = ..., run_key: _Optional[str] = ..., request_fingerprint: _Optional[str] = ..., generation: _Optional[int] = ..., retry_of: _Optional[str] = ..., spec: _Optional[_Union[_run_spec_pb2.RunSpec, _Mapping]] = ..., trigger: _Optional[_Union[_run_pb2.Trigger, _Mapping]] = ..., requested_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ..., max_duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., plan_id: _Optional[str] = ..., plan_fingerprint: _Optional[str] = ...) -> None: ...

class PlanCreated(_message.Message):
    __slots__ = ("run_id", "request_fingerprint", "plan_id", "plan_fingerprint", "deployment_id", "task_count")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    PLAN_ID_FIELD_NUMBER: _ClassVar[int]
    PLAN_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_COUNT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    request_fingerprint: str
    plan_id: str
    plan_fingerprint: str
    deployment_id: str
    task_count: int
    def __init__(self, run_id: _Optional[str] = ..., request_fingerprint: _Optional[str] = ..., plan_id: _Optional[str] = ..., plan_fingerprint: _Optional[str] = ..., deployment_id: _Optional[str] = ..., task_count: _Optional[int] = ...) -> None: ...

class PlanFailed(_message.Message):
    __slots__ = ("run_id", "request_fingerprint", "reason", "message")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    request_fingerprint: str
    reason: _error_pb2.ErrorReason
    message: str
    def __init__(self, run_id: _Optional[str] = ..., request_fingerprint: _Optional[str] = ..., reason: _Optional[_Union[_error_pb2.ErrorReason, str]] = ..., message: _Optional[str] = ...) -> None: ...

class DispatchRequested(_message.Message):
    __slots__ = ("run_id", "task", "attempt", "attempt_id", "mode", "worker_id", "ack_timeout", "admission_epoch", "fencing_token")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    ACK_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    ADMISSION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    task: _common_pb2.TaskRef
    attempt: int
    attempt_id: str
    mode: _state_pb2.DispatchMode
    worker_id: str
    ack_timeout: _duration_pb2.Duration
    admission_epoch: int
    fencing_token: int
    def __init__(self, run_id: _Optional[str] = ..., task: _Optional[_Union[_common_pb2.TaskRef, _Mapping]] = ..., attempt: _Optional[int] = ..., attempt_id: _Optional[str] = ..., mode: _Optional[_Union[_state_pb2.DispatchMode, str]] = ..., worker_id: _Optional[str] = ..., ack_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., admission_epoch: _Optional[int] = ..., fencing_token: _Optional[int] = ...) -> None: ...

class DispatchEnqueued(_message.Message):
    __slots__ = ("run_id", "task", "attempt_id", "queue_entry_id", "queue")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_ENTRY_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    task: _common_pb2.TaskRef
    attempt_id: str
    queue_entry_id: str
    queue: str
    def __init__(self, run_id: _Optional[str] = ..., task: _Optional[_Union[_common_pb2.TaskRef, _Mapping]] = ..., attempt_id: _Optional[str] = ..., queue_entry_id: _Optional[str] = ..., queue: _Optional[str] = ...) -> None: ...

class TaskStarted(_message.Message):
    __slots__ = ("run_id", "task", "attempt_id", "worker_id", "session", "start_time")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    task: _common_pb2.TaskRef
    attempt_id: str
    worker_id: str
    session: str
    start_time: _timestamp_pb2.Timestamp
    def __init__(self, run_id: _Optional[str] = ..., task: _Optional[_Union[_common_pb2.TaskRef, _Mapping]] = ..., attempt_id: _Optional[str] = ..., worker_id: _Optional[str] = ..., session: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class TaskFinished(_message.Message):
    __slots__ = ("run_id", "task", "attempt_id", "worker_id", "session", "start_time", "end_time", "outcome", "error", "skip_reason", "outputs", "checks", "gating", "usage", "items", "sensor", "has_good_version")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    SKIP_REASON_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    GATING_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    SENSOR_FIELD_NUMBER: _ClassVar[int]
    HAS_GOOD_VERSION_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    task: _common_pb2.TaskRef
    attempt_id: str
    worker_id: str
    session: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    outcome: _state_pb2.Outcome
    error: _common_pb2.TaskError
    skip_reason: str
    outputs: _containers.RepeatedCompositeFieldContainer[_materialization_pb2.Output]
    checks: _containers.RepeatedCompositeFieldContainer[_quality_pb2.CheckResult]
    gating: _quality_pb2.Gating
    usage: _common_pb2.Usage
    items: _materialization_pb2.MappedItems
    sensor: _sensor_pb2.SensorResult
    has_good_version: bool
    def __init__(self, run_id: _Optional[str] = ..., task: _Optional[_Union[_common_pb2.TaskRef, _Mapping]] = ..., attempt_id: _Optional[str] = ..., worker_id: _Optional[str] = ..., session: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., outcome: _Optional[_Union[_state_pb2.Outcome, str]] = ..., error: _Optional[_Union[_common_pb2.TaskError, _Mapping]] = ..., skip_reason: _Optional[str] = ..., outputs: _Optional[_Iterable[_Union[_materialization_pb2.Output, _Mapping]]] = ..., checks: _Optional[_Iterable[_Union[_quality_pb2.CheckResult, _Mapping]]] = ..., gating: _Optional[_Union[_quality_pb2.Gating, str]] = ..., usage: _Optional[_Union[_common_pb2.Usage, _Mapping]] = ..., items: _Optional[_Union[_materialization_pb2.MappedItems, _Mapping]] = ..., sensor: _Optional[_Union[_sensor_pb2.SensorResult, _Mapping]] = ..., has_good_version: bool = ...) -> None: ...

class TimerFired(_message.Message):
    __slots__ = ("run_id", "task", "attempt_id", "timer_id", "kind", "due_time", "last_heartbeat_time", "callbacks_healthy_since")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    TIMER_ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    DUE_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_HEARTBEAT_TIME_FIELD_NUMBER: _ClassVar[int]
    CALLBACKS_HEALTHY_SINCE_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    task: _common_pb2.TaskRef
    attempt_id: str
    timer_id: str
    kind: TimerKind
    due_time: _timestamp_pb2.Timestamp
    last_heartbeat_time: _timestamp_pb2.Timestamp
    callbacks_healthy_since: _timestamp_pb2.Timestamp
    def __init__(self, run_id: _Optional[str] = ..., task: _Optional[_Union[_common_pb2.TaskRef, _Mapping]] = ..., attempt_id: _Optional[str] = ..., timer_id: _Optional[str] = ..., kind: _Optional[_Union[TimerKind, str]] = ..., due_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_heartbeat_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., callbacks_healthy_since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RunCancelRequested(_message.Message):
    __slots__ = ("run_id", "version", "requested_by", "by_system")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BY_FIELD_NUMBER: _ClassVar[int]
    BY_SYSTEM_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    version: int
    requested_by: _common_pb2.Actor
    by_system: bool
    def __init__(self, run_id: _Optional[str] = ..., version: _Optional[int] = ..., requested_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ..., by_system: bool = ...) -> None: ...

class RunPaused(_message.Message):
    __slots__ = ("run_id", "version", "requested_by")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BY_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    version: int
    requested_by: _common_pb2.Actor
    def __init__(self, run_id: _Optional[str] = ..., version: _Optional[int] = ..., requested_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ...) -> None: ...

class RunResumed(_message.Message):
    __slots__ = ("run_id", "version", "requested_by")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BY_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    version: int
    requested_by: _common_pb2.Actor
    def __init__(self, run_id: _Optional[str] = ..., version: _Optional[int] = ..., requested_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ...) -> None: ...

class TaskForceCancelled(_message.Message):
    __slots__ = ("run_id", "task", "attempt_id", "version", "requested_by", "last_heartbeat_time")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BY_FIELD_NUMBER: _ClassVar[int]
    LAST_HEARTBEAT_TIME_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    task: _common_pb2.TaskRef
    attempt_id: str
    version: int
    requested_by: _common_pb2.Actor
    last_heartbeat_time: _timestamp_pb2.Timestamp
    def __init__(self, run_id: _Optional[str] = ..., task: _Optional[_Union[_common_pb2.TaskRef, _Mapping]] = ..., attempt_id: _Optional[str] = ..., version: _Optional[int] = ..., requested_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ..., last_heartbeat_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class QuarantineResolved(_message.Message):
    __slots__ = ("run_id", "materialization_id", "asset_key", "partition_key", "decision", "version", "resolved_by")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    MATERIALIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    ASSET_KEY_FIELD_NUMBER: _ClassVar[int]
    PARTITION_KEY_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    RESOLVED_BY_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    materialization_id: str
    asset_key: str
    partition_key: str
    decision: _state_pb2.QuarantineDecision
    version: int
    resolved_by: _common_pb2.Actor
    def __init__(self, run_id: _Optional[str] = ..., materialization_id: _Optional[str] = ..., asset_key: _Optional[str] = ..., partition_key: _Optional[str] = ..., decision: _Optional[_Union[_state_pb2.QuarantineDecision, str]] = ..., version: _Optional[int] = ..., resolved_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ...) -> None: ...
