import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import common_pb2 as _common_pb2
from servo.v1 import state_pb2 as _state_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RunChanged(_message.Message):
    __slots__ = ("tenant", "workspace", "run_id", "shard", "position", "created", "state", "reason", "failed_tasks", "made", "time")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SHARD_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FAILED_TASKS_FIELD_NUMBER: _ClassVar[int]
    MADE_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    run_id: str
    shard: int
    position: int
    created: bool
    state: _state_pb2.RunState
    reason: _state_pb2.TransitionReason
    failed_tasks: _containers.RepeatedCompositeFieldContainer[FailedTask]
    made: _containers.RepeatedCompositeFieldContainer[MadeVersion]
    time: _timestamp_pb2.Timestamp
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., run_id: _Optional[str] = ..., shard: _Optional[int] = ..., position: _Optional[int] = ..., created: bool = ..., state: _Optional[_Union[_state_pb2.RunState, str]] = ..., reason: _Optional[_Union[_state_pb2.TransitionReason, str]] = ..., failed_tasks: _Optional[_Iterable[_Union[FailedTask, _Mapping]]] = ..., made: _Optional[_Iterable[_Union[MadeVersion, _Mapping]]] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class FailedTask(_message.Message):
    __slots__ = ("task", "asset_key", "attempt", "reason")
    TASK_FIELD_NUMBER: _ClassVar[int]
    ASSET_KEY_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    task: _common_pb2.TaskRef
    asset_key: str
    attempt: int
    reason: _state_pb2.TransitionReason
    def __init__(self, task: _Optional[_Union[_common_pb2.TaskRef, _Mapping]] = ..., asset_key: _Optional[str] = ..., attempt: _Optional[int] = ..., reason: _Optional[_Union[_state_pb2.TransitionReason, str]] = ...) -> None: ...

class MadeVersion(_message.Message):
    __slots__ = ("materialization_id", "asset_key", "partition_key", "state")
    MATERIALIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    ASSET_KEY_FIELD_NUMBER: _ClassVar[int]
    PARTITION_KEY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    materialization_id: str
    asset_key: str
    partition_key: str
    state: _state_pb2.MaterializationState
    def __init__(self, materialization_id: _Optional[str] = ..., asset_key: _Optional[str] = ..., partition_key: _Optional[str] = ..., state: _Optional[_Union[_state_pb2.MaterializationState, str]] = ...) -> None: ...
