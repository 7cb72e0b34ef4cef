import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from servo.v1 import state_pb2 as _state_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Backoff(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BACKOFF_UNSPECIFIED: _ClassVar[Backoff]
    BACKOFF_EXPONENTIAL: _ClassVar[Backoff]
    BACKOFF_LINEAR: _ClassVar[Backoff]
    BACKOFF_CONSTANT: _ClassVar[Backoff]
BACKOFF_UNSPECIFIED: Backoff
BACKOFF_EXPONENTIAL: Backoff
BACKOFF_LINEAR: Backoff
BACKOFF_CONSTANT: Backoff

class TraceContext(_message.Message):
    __slots__ = ("traceparent", "tracestate")
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    TRACESTATE_FIELD_NUMBER: _ClassVar[int]
    traceparent: str
    tracestate: str
    def __init__(self, traceparent: _Optional[str] = ..., tracestate: _Optional[str] = ...) -> None: ...

class TaskRef(_message.Message):
    __slots__ = ("ordinal", "map_index")
    ORDINAL_FIELD_NUMBER: _ClassVar[int]
    MAP_INDEX_FIELD_NUMBER: _ClassVar[int]
    ordinal: int
    map_index: int
    def __init__(self, ordinal: _Optional[int] = ..., map_index: _Optional[int] = ...) -> None: ...

class TaskError(_message.Message):
    __slots__ = ("category", "message", "type", "location", "hint", "traceback", "retriable")
    CATEGORY_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    TRACEBACK_FIELD_NUMBER: _ClassVar[int]
    RETRIABLE_FIELD_NUMBER: _ClassVar[int]
    category: _state_pb2.ErrorCategory
    message: str
    type: str
    location: str
    hint: str
    traceback: str
    retriable: bool
    def __init__(self, category: _Optional[_Union[_state_pb2.ErrorCategory, str]] = ..., message: _Optional[str] = ..., type: _Optional[str] = ..., location: _Optional[str] = ..., hint: _Optional[str] = ..., traceback: _Optional[str] = ..., retriable: bool = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("cpu_ms", "memory_mb_ms", "gpu_ms", "memory_peak_bytes", "read_bytes", "written_bytes", "egress_bytes", "billed_units")
    class BilledUnitsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    CPU_MS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MB_MS_FIELD_NUMBER: _ClassVar[int]
    GPU_MS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    READ_BYTES_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_BYTES_FIELD_NUMBER: _ClassVar[int]
    EGRESS_BYTES_FIELD_NUMBER: _ClassVar[int]
    BILLED_UNITS_FIELD_NUMBER: _ClassVar[int]
    cpu_ms: int
    memory_mb_ms: int
    gpu_ms: int
    memory_peak_bytes: int
    read_bytes: int
    written_bytes: int
    egress_bytes: int
    billed_units: _containers.ScalarMap[str, int]
    def __init__(self, cpu_ms: _Optional[int] = ..., memory_mb_ms: _Optional[int] = ..., gpu_ms: _Optional[int] = ..., memory_peak_bytes: _Optional[int] = ..., read_bytes: _Optional[int] = ..., written_bytes: _Optional[int] = ..., egress_bytes: _Optional[int] = ..., billed_units: _Optional[_Mapping[str, int]] = ...) -> None: ...

class SecretRef(_message.Message):
    __slots__ = ("name", "provider", "path", "version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PROVIDER_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    provider: str
    path: str
    version: str
    def __init__(self, name: _Optional[str] = ..., provider: _Optional[str] = ..., path: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class Resources(_message.Message):
    __slots__ = ("cpu_millicores", "memory_bytes", "gpus", "capabilities")
    CPU_MILLICORES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    GPUS_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    cpu_millicores: int
    memory_bytes: int
    gpus: int
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, cpu_millicores: _Optional[int] = ..., memory_bytes: _Optional[int] = ..., gpus: _Optional[int] = ..., capabilities: _Optional[_Iterable[str]] = ...) -> None: ...

class RetryPolicy(_message.Message):
    __slots__ = ("max_attempts", "backoff", "initial_delay", "max_delay", "retry_on_categories", "retry_on_types", "never_on_types")
    MAX_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    BACKOFF_FIELD_NUMBER: _ClassVar[int]
    INITIAL_DELAY_FIELD_NUMBER: _ClassVar[int]
    MAX_DELAY_FIELD_NUMBER: _ClassVar[int]
    RETRY_ON_CATEGORIES_FIELD_NUMBER: _ClassVar[int]
    RETRY_ON_TYPES_FIELD_NUMBER: _ClassVar[int]
    NEVER_ON_TYPES_FIELD_NUMBER: _ClassVar[int]
    max_attempts: int
    backoff: Backoff
    initial_delay: _duration_pb2.Duration
    max_delay: _duration_pb2.Duration
    retry_on_categories: _containers.RepeatedScalarFieldContainer[_state_pb2.ErrorCategory]
    retry_on_types: _containers.RepeatedScalarFieldContainer[str]
    never_on_types: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, max_attempts: _Optional[int] = ..., backoff: _Optional[_Union[Backoff, str]] = ..., initial_delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_delay: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., retry_on_categories: _Optional[_Iterable[_Union[_state_pb2.ErrorCategory, str]]] = ..., retry_on_types: _Optional[_Iterable[str]] = ..., never_on_types: _Optional[_Iterable[str]] = ...) -> None: ...

class Timeouts(_message.Message):
    __slots__ = ("execution", "dispatch_ack", "heartbeat")
    EXECUTION_FIELD_NUMBER: _ClassVar[int]
    DISPATCH_ACK_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    execution: _duration_pb2.Duration
    dispatch_ack: _duration_pb2.Duration
    heartbeat: _duration_pb2.Duration
    def __init__(self, execution: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., dispatch_ack: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., heartbeat: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Actor(_message.Message):
    __slots__ = ("principal", "comment")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    principal: str
    comment: str
    def __init__(self, principal: _Optional[str] = ..., comment: _Optional[str] = ...) -> None: ...

class TaskCounts(_message.Message):
    __slots__ = ("total", "blocked", "ready", "active", "retry_wait", "succeeded", "failed", "skipped", "cancelled")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    BLOCKED_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    RETRY_WAIT_FIELD_NUMBER: _ClassVar[int]
    SUCCEEDED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    total: int
    blocked: int
    ready: int
    active: int
    retry_wait: int
    succeeded: int
    failed: int
    skipped: int
    cancelled: int
    def __init__(self, total: _Optional[int] = ..., blocked: _Optional[int] = ..., ready: _Optional[int] = ..., active: _Optional[int] = ..., retry_wait: _Optional[int] = ..., succeeded: _Optional[int] = ..., failed: _Optional[int] = ..., skipped: _Optional[int] = ..., cancelled: _Optional[int] = ...) -> None: ...
