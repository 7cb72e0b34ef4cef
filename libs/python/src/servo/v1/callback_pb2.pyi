import datetime

from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import common_pb2 as _common_pb2
from servo.v1 import error_pb2 as _error_pb2
from servo.v1 import materialization_pb2 as _materialization_pb2
from servo.v1 import options_pb2 as _options_pb2
from servo.v1 import quality_pb2 as _quality_pb2
from servo.v1 import sensor_pb2 as _sensor_pb2
from servo.v1 import state_pb2 as _state_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LogStream(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOG_STREAM_UNSPECIFIED: _ClassVar[LogStream]
    LOG_STREAM_STDOUT: _ClassVar[LogStream]
    LOG_STREAM_STDERR: _ClassVar[LogStream]
    LOG_STREAM_LOGGER: _ClassVar[LogStream]
    LOG_STREAM_WORKER: _ClassVar[LogStream]

class LogLevel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOG_LEVEL_UNSPECIFIED: _ClassVar[LogLevel]
    LOG_LEVEL_DEBUG: _ClassVar[LogLevel]
    LOG_LEVEL_INFO: _ClassVar[LogLevel]
    LOG_LEVEL_WARNING: _ClassVar[LogLevel]
    LOG_LEVEL_ERROR: _ClassVar[LogLevel]
LOG_STREAM_UNSPECIFIED: LogStream
LOG_STREAM_STDOUT: LogStream
LOG_STREAM_STDERR: LogStream
LOG_STREAM_LOGGER: LogStream
LOG_STREAM_WORKER: LogStream
LOG_LEVEL_UNSPECIFIED: LogLevel
LOG_LEVEL_DEBUG: LogLevel
LOG_LEVEL_INFO: LogLevel
LOG_LEVEL_WARNING: LogLevel
LOG_LEVEL_ERROR: LogLevel

class StartAttemptRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "run_id", "attempt_id", "task", "worker_id", "session", "mode", "start_time", "heartbeat_timeout")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    run_id: str
    attempt_id: str
    task: _common_pb2.TaskRef
    worker_id: str
    session: str
    mode: _state_pb2.DispatchMode
    start_time: _timestamp_pb2.Timestamp
    heartbeat_timeout: _duration_pb2.Duration
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., run_id: _Optional[str] = ..., attempt_id: _Optional[str] = ..., task: _Optional[_Union[_common_pb2.TaskRef, _Mapping]] = ..., worker_id: _Optional[str] = ..., session: _Optional[str] = ..., mode: _Optional[_Union[_state_pb2.DispatchMode, str]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., heartbeat_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class StartAttemptResponse(_message.Message):
    __slots__ = ("acceptance", "renewed", "accepted_event_id")
    ACCEPTANCE_FIELD_NUMBER: _ClassVar[int]
    RENEWED_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    acceptance: _state_pb2.Acceptance
    renewed: RenewedPaths
    accepted_event_id: str
    def __init__(self, acceptance: _Optional[_Union[_state_pb2.Acceptance, str]] = ..., renewed: _Optional[_Union[RenewedPaths, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class RenewedPaths(_message.Message):
    __slots__ = ("heartbeat", "logs")
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    LOGS_FIELD_NUMBER: _ClassVar[int]
    heartbeat: str
    logs: str
    def __init__(self, heartbeat: _Optional[str] = ..., logs: _Optional[str] = ...) -> None: ...

class HeartbeatRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "run_id", "attempt_id", "session", "progress_ppm", "progress_message", "task", "heartbeat_timeout")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_PPM_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    run_id: str
    attempt_id: str
    session: str
    progress_ppm: int
    progress_message: str
    task: _common_pb2.TaskRef
    heartbeat_timeout: _duration_pb2.Duration
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., run_id: _Optional[str] = ..., attempt_id: _Optional[str] = ..., session: _Optional[str] = ..., progress_ppm: _Optional[int] = ..., progress_message: _Optional[str] = ..., task: _Optional[_Union[_common_pb2.TaskRef, _Mapping]] = ..., heartbeat_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class HeartbeatResponse(_message.Message):
    __slots__ = ("should_cancel", "cancel_grace", "renewed", "interval")
    SHOULD_CANCEL_FIELD_NUMBER: _ClassVar[int]
    CANCEL_GRACE_FIELD_NUMBER: _ClassVar[int]
    RENEWED_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    should_cancel: bool
    cancel_grace: _duration_pb2.Duration
    renewed: RenewedPaths
    interval: _duration_pb2.Duration
    def __init__(self, should_cancel: bool = ..., cancel_grace: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., renewed: _Optional[_Union[RenewedPaths, _Mapping]] = ..., interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class AppendLogsRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "run_id", "attempt_id", "session", "sequence", "lines", "dropped_lines")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    DROPPED_LINES_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    run_id: str
    attempt_id: str
    session: str
    sequence: int
    lines: _containers.RepeatedCompositeFieldContainer[LogLine]
    dropped_lines: int
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., run_id: _Optional[str] = ..., attempt_id: _Optional[str] = ..., session: _Optional[str] = ..., sequence: _Optional[int] = ..., lines: _Optional[_Iterable[_Union[LogLine, _Mapping]]] = ..., dropped_lines: _Optional[int] = ...) -> None: ...

class LogLine(_message.Message):
    __slots__ = ("time", "stream", "level", "text", "fields", "task_id", "attempt_id")
    class FieldsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TIME_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    time: _timestamp_pb2.Timestamp
    stream: LogStream
    level: LogLevel
    text: str
    fields: _containers.ScalarMap[str, str]
    task_id: str
    attempt_id: str
    def __init__(self, time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., stream: _Optional[_Union[LogStream, str]] = ..., level: _Optional[_Union[LogLevel, str]] = ..., text: _Optional[str] = ..., fields: _Optional[_Mapping[str, str]] = ..., task_id: _Optional[str] = ..., attempt_id: _Optional[str] = ...) -> None: ...

class AppendLogsResponse(_message.Message):
    __slots__ = ("rejected_lines",)
    REJECTED_LINES_FIELD_NUMBER: _ClassVar[int]
    rejected_lines: int
    def __init__(self, rejected_lines: _Optional[int] = ...) -> None: ...

class FinishAttemptRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "run_id", "attempt_id", "task", "worker_id", "session", "start_time", "end_time", "outcome", "error", "skip_reason", "outputs", "checks", "gating", "usage", "items", "sensor")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
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
    tenant: str
    workspace: str
    run_id: str
    attempt_id: str
    task: _common_pb2.TaskRef
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
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., run_id: _Optional[str] = ..., attempt_id: _Optional[str] = ..., task: _Optional[_Union[_common_pb2.TaskRef, _Mapping]] = ..., worker_id: _Optional[str] = ..., session: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., outcome: _Optional[_Union[_state_pb2.Outcome, str]] = ..., error: _Optional[_Union[_common_pb2.TaskError, _Mapping]] = ..., skip_reason: _Optional[str] = ..., outputs: _Optional[_Iterable[_Union[_materialization_pb2.Output, _Mapping]]] = ..., checks: _Optional[_Iterable[_Union[_quality_pb2.CheckResult, _Mapping]]] = ..., gating: _Optional[_Union[_quality_pb2.Gating, str]] = ..., usage: _Optional[_Union[_common_pb2.Usage, _Mapping]] = ..., items: _Optional[_Union[_materialization_pb2.MappedItems, _Mapping]] = ..., sensor: _Optional[_Union[_sensor_pb2.SensorResult, _Mapping]] = ...) -> None: ...

class FinishAttemptResponse(_message.Message):
    __slots__ = ("acceptance", "accepted_event_id")
    ACCEPTANCE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    acceptance: _state_pb2.Acceptance
    accepted_event_id: str
    def __init__(self, acceptance: _Optional[_Union[_state_pb2.Acceptance, str]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class StreamCallbacksRequest(_message.Message):
    __slots__ = ("tenant", "items")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    items: _containers.RepeatedCompositeFieldContainer[CallbackItem]
    def __init__(self, tenant: _Optional[str] = ..., items: _Optional[_Iterable[_Union[CallbackItem, _Mapping]]] = ...) -> None: ...

class CallbackItem(_message.Message):
    __slots__ = ("number", "presigned", "start", "heartbeat", "logs", "finish", "renewal")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PRESIGNED_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    LOGS_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    RENEWAL_FIELD_NUMBER: _ClassVar[int]
    number: int
    presigned: str
    start: StartAttemptRequest
    heartbeat: HeartbeatRequest
    logs: AppendLogsRequest
    finish: FinishAttemptRequest
    renewal: str
    def __init__(self, number: _Optional[int] = ..., presigned: _Optional[str] = ..., start: _Optional[_Union[StartAttemptRequest, _Mapping]] = ..., heartbeat: _Optional[_Union[HeartbeatRequest, _Mapping]] = ..., logs: _Optional[_Union[AppendLogsRequest, _Mapping]] = ..., finish: _Optional[_Union[FinishAttemptRequest, _Mapping]] = ..., renewal: _Optional[str] = ...) -> None: ...

class StreamCallbacksResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[CallbackResult]
    def __init__(self, results: _Optional[_Iterable[_Union[CallbackResult, _Mapping]]] = ...) -> None: ...

class CallbackResult(_message.Message):
    __slots__ = ("number", "start", "heartbeat", "logs", "finish", "refusal")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    LOGS_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    number: int
    start: StartAttemptResponse
    heartbeat: HeartbeatResponse
    logs: AppendLogsResponse
    finish: FinishAttemptResponse
    refusal: CallbackRefusal
    def __init__(self, number: _Optional[int] = ..., start: _Optional[_Union[StartAttemptResponse, _Mapping]] = ..., heartbeat: _Optional[_Union[HeartbeatResponse, _Mapping]] = ..., logs: _Optional[_Union[AppendLogsResponse, _Mapping]] = ..., finish: _Optional[_Union[FinishAttemptResponse, _Mapping]] = ..., refusal: _Optional[_Union[CallbackRefusal, _Mapping]] = ...) -> None: ...

class CallbackRefusal(_message.Message):
    __slots__ = ("reason", "message", "retry_after")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_FIELD_NUMBER: _ClassVar[int]
    reason: _error_pb2.ErrorReason
    message: str
    retry_after: _duration_pb2.Duration
    def __init__(self, reason: _Optional[_Union[_error_pb2.ErrorReason, str]] = ..., message: _Optional[str] = ..., retry_after: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class TailLogsRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "run_id", "task_id", "attempt_id", "follow", "resume_token", "last_lines", "min_level")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    LAST_LINES_FIELD_NUMBER: _ClassVar[int]
    MIN_LEVEL_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    run_id: str
    task_id: str
    attempt_id: str
    follow: bool
    resume_token: str
    last_lines: int
    min_level: LogLevel
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., run_id: _Optional[str] = ..., task_id: _Optional[str] = ..., attempt_id: _Optional[str] = ..., follow: bool = ..., resume_token: _Optional[str] = ..., last_lines: _Optional[int] = ..., min_level: _Optional[_Union[LogLevel, str]] = ...) -> None: ...

class TailLogsResponse(_message.Message):
    __slots__ = ("resume_token", "lines", "caught_up")
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    CAUGHT_UP_FIELD_NUMBER: _ClassVar[int]
    resume_token: str
    lines: _containers.RepeatedCompositeFieldContainer[LogLine]
    caught_up: bool
    def __init__(self, resume_token: _Optional[str] = ..., lines: _Optional[_Iterable[_Union[LogLine, _Mapping]]] = ..., caught_up: bool = ...) -> None: ...
