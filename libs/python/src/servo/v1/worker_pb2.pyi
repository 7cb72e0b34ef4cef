import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import code_pb2 as _code_pb2
from servo.v1 import common_pb2 as _common_pb2
from servo.v1 import quality_pb2 as _quality_pb2
from servo.v1 import run_spec_pb2 as _run_spec_pb2
from servo.v1 import state_pb2 as _state_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WorkerState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WORKER_STATE_UNSPECIFIED: _ClassVar[WorkerState]
    WORKER_STATE_ACTIVE: _ClassVar[WorkerState]
    WORKER_STATE_DRAINING: _ClassVar[WorkerState]
    WORKER_STATE_GONE: _ClassVar[WorkerState]
    WORKER_STATE_LOST: _ClassVar[WorkerState]

class WorkerCommand(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WORKER_COMMAND_UNSPECIFIED: _ClassVar[WorkerCommand]
    WORKER_COMMAND_DRAIN: _ClassVar[WorkerCommand]
    WORKER_COMMAND_KILL: _ClassVar[WorkerCommand]
WORKER_STATE_UNSPECIFIED: WorkerState
WORKER_STATE_ACTIVE: WorkerState
WORKER_STATE_DRAINING: WorkerState
WORKER_STATE_GONE: WorkerState
WORKER_STATE_LOST: WorkerState
WORKER_COMMAND_UNSPECIFIED: WorkerCommand
WORKER_COMMAND_DRAIN: WorkerCommand
WORKER_COMMAND_KILL: WorkerCommand

class SignedEnvelope(_message.Message):
    __slots__ = ("envelope", "key_id", "signature")
    ENVELOPE_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    envelope: bytes
    key_id: str
    signature: bytes
    def __init__(self, envelope: _Optional[bytes] = ..., key_id: _Optional[str] = ..., signature: _Optional[bytes] = ...) -> None: ...

class TaskEnvelope(_message.Message):
    __slots__ = ("tenant", "workspace", "run_id", "task", "task_id", "task_key", "operation", "asset_key", "partition_key", "attempt", "attempt_id", "failures", "idempotency_key", "fencing_token", "mode", "code", "artifact", "asset_config_json", "run_config_json", "inputs", "inputs_uri", "output_uri", "output_asset_keys", "checks", "quarantine", "secrets", "resources", "timeouts", "deadline", "heartbeat_interval", "callbacks", "item_json", "sensor", "retry", "trace", "isolated", "code_version", "plan_id", "inputs_digest", "previous")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_KEY_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    ASSET_KEY_FIELD_NUMBER: _ClassVar[int]
    PARTITION_KEY_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    FENCING_TOKEN_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    ASSET_CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    RUN_CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    INPUTS_URI_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_URI_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_ASSET_KEYS_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    QUARANTINE_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    TIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    CALLBACKS_FIELD_NUMBER: _ClassVar[int]
    ITEM_JSON_FIELD_NUMBER: _ClassVar[int]
    SENSOR_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    ISOLATED_FIELD_NUMBER: _ClassVar[int]
    CODE_VERSION_FIELD_NUMBER: _ClassVar[int]
    PLAN_ID_FIELD_NUMBER: _ClassVar[int]
    INPUTS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    run_id: str
    task: _common_pb2.TaskRef
    task_id: str
    task_key: str
    operation: _state_pb2.Operation
    asset_key: str
    partition_key: str
    attempt: int
    attempt_id: str
    failures: int
    idempotency_key: str
    fencing_token: int
    mode: _state_pb2.DispatchMode
    code: _code_pb2.CodeRef
    artifact: _code_pb2.CodeArtifact
    asset_config_json: str
    run_config_json: str
    inputs: _containers.RepeatedCompositeFieldContainer[ResolvedInput]
    inputs_uri: str
    output_uri: str
    output_asset_keys: _containers.RepeatedScalarFieldContainer[str]
    checks: _containers.RepeatedCompositeFieldContainer[_quality_pb2.CheckDefinition]
    quarantine: bool
    secrets: _containers.RepeatedCompositeFieldContainer[_common_pb2.SecretRef]
    resources: _common_pb2.Resources
    timeouts: _common_pb2.Timeouts
    deadline: _timestamp_pb2.Timestamp
    heartbeat_interval: _duration_pb2.Duration
    callbacks: CallbackPaths
    item_json: str
    sensor: _run_spec_pb2.SensorPoll
    retry: _common_pb2.RetryPolicy
    trace: _common_pb2.TraceContext
    isolated: bool
    code_version: str
    plan_id: str
    inputs_digest: str
    previous: PreviousVersion
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., run_id: _Optional[str] = ..., task: _Optional[_Union[_common_pb2.TaskRef, _Mapping]] = ..., task_id: _Optional[str] = ..., task_key: _Optional[str] = ..., operation: _Optional[_Union[_state_pb2.Operation, str]] = ..., asset_key: _Optional[str] = ..., partition_key: _Optional[str] = ..., attempt: _Optional[int] = ..., attempt_id: _Optional[str] = ..., failures: _Optional[int] = ..., idempotency_key: _Optional[str] = ..., fencing_token: _Optional[int] = ..., mode: _Optional[_Union[_state_pb2.DispatchMode, str]] = ..., code: _Optional[_Union[_code_pb2.CodeRef, _Mapping]] = ..., artifact: _Optional[_Union[_code_pb2.CodeArtifact, _Mapping]] = ..., asset_config_json: _Optional[str] = ..., run_config_json: _Optional[str] = ..., inputs: _Optional[_Iterable[_Union[ResolvedInput, _Mapping]]] = ..., inputs_uri: _Optional[str] = ..., output_uri: _Optional[str] = ..., output_asset_keys: _Optional[_Iterable[str]] = ..., checks: _Optional[_Iterable[_Union[_quality_pb2.CheckDefinition, _Mapping]]] = ..., quarantine: bool = ..., secrets: _Optional[_Iterable[_Union[_common_pb2.SecretRef, _Mapping]]] = ..., resources: _Optional[_Union[_common_pb2.Resources, _Mapping]] = ..., timeouts: _Optional[_Union[_common_pb2.Timeouts, _Mapping]] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., heartbeat_interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., callbacks: _Optional[_Union[CallbackPaths, _Mapping]] = ..., item_json: _Optional[str] = ..., sensor: _Optional[_Union[_run_spec_pb2.SensorPoll, _Mapping]] = ..., retry: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ..., trace: _Optional[_Union[_common_pb2.TraceContext, _Mapping]] = ..., isolated: bool = ..., code_version: _Optional[str] = ..., plan_id: _Optional[str] = ..., inputs_digest: _Optional[str] = ..., previous: _Optional[_Union[PreviousVersion, _Mapping]] = ...) -> None: ...

class PreviousVersion(_message.Message):
    __slots__ = ("materialization_id", "uri", "row_count")
    MATERIALIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    URI_FIELD_NUMBER: _ClassVar[int]
    ROW_COUNT_FIELD_NUMBER: _ClassVar[int]
    materialization_id: str
    uri: str
    row_count: int
    def __init__(self, materialization_id: _Optional[str] = ..., uri: _Optional[str] = ..., row_count: _Optional[int] = ...) -> None: ...

class CallbackPaths(_message.Message):
    __slots__ = ("base_url", "start", "heartbeat", "logs", "finished")
    BASE_URL_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    LOGS_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    base_url: str
    start: str
    heartbeat: str
    logs: str
    finished: str
    def __init__(self, base_url: _Optional[str] = ..., start: _Optional[str] = ..., heartbeat: _Optional[str] = ..., logs: _Optional[str] = ..., finished: _Optional[str] = ...) -> None: ...

class ResolvedInput(_message.Message):
    __slots__ = ("asset_key", "parameter", "versions", "mapped", "shape")
    ASSET_KEY_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    MAPPED_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    asset_key: str
    parameter: str
    versions: _containers.RepeatedCompositeFieldContainer[ResolvedVersion]
    mapped: bool
    shape: _state_pb2.InputShape
    def __init__(self, asset_key: _Optional[str] = ..., parameter: _Optional[str] = ..., versions: _Optional[_Iterable[_Union[ResolvedVersion, _Mapping]]] = ..., mapped: bool = ..., shape: _Optional[_Union[_state_pb2.InputShape, str]] = ...) -> None: ...

class ResolvedVersion(_message.Message):
    __slots__ = ("partition_key", "materialization_id", "uri")
    PARTITION_KEY_FIELD_NUMBER: _ClassVar[int]
    MATERIALIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    URI_FIELD_NUMBER: _ClassVar[int]
    partition_key: str
    materialization_id: str
    uri: str
    def __init__(self, partition_key: _Optional[str] = ..., materialization_id: _Optional[str] = ..., uri: _Optional[str] = ...) -> None: ...

class WorkerInfo(_message.Message):
    __slots__ = ("name", "workspaces", "slots", "capabilities", "handlers", "pools", "resources", "version", "push_url")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WORKSPACES_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    HANDLERS_FIELD_NUMBER: _ClassVar[int]
    POOLS_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PUSH_URL_FIELD_NUMBER: _ClassVar[int]
    name: str
    workspaces: _containers.RepeatedScalarFieldContainer[str]
    slots: int
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    handlers: _containers.RepeatedScalarFieldContainer[str]
    pools: _containers.RepeatedScalarFieldContainer[str]
    resources: _common_pb2.Resources
    version: str
    push_url: str
    def __init__(self, name: _Optional[str] = ..., workspaces: _Optional[_Iterable[str]] = ..., slots: _Optional[int] = ..., capabilities: _Optional[_Iterable[str]] = ..., handlers: _Optional[_Iterable[str]] = ..., pools: _Optional[_Iterable[str]] = ..., resources: _Optional[_Union[_common_pb2.Resources, _Mapping]] = ..., version: _Optional[str] = ..., push_url: _Optional[str] = ...) -> None: ...

class Worker(_message.Message):
    __slots__ = ("worker_id", "info", "state", "active_attempts", "seen_time", "register_time", "last_command", "version")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    INFO_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    SEEN_TIME_FIELD_NUMBER: _ClassVar[int]
    REGISTER_TIME_FIELD_NUMBER: _ClassVar[int]
    LAST_COMMAND_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    info: WorkerInfo
    state: WorkerState
    active_attempts: int
    seen_time: _timestamp_pb2.Timestamp
    register_time: _timestamp_pb2.Timestamp
    last_command: WorkerCommand
    version: int
    def __init__(self, worker_id: _Optional[str] = ..., info: _Optional[_Union[WorkerInfo, _Mapping]] = ..., state: _Optional[_Union[WorkerState, str]] = ..., active_attempts: _Optional[int] = ..., seen_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., register_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_command: _Optional[_Union[WorkerCommand, str]] = ..., version: _Optional[int] = ...) -> None: ...
