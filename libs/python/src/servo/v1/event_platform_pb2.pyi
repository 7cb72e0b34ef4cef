import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import common_pb2 as _common_pb2
from servo.v1 import quota_model_pb2 as _quota_model_pb2
from servo.v1 import worker_pb2 as _worker_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DispatchPaused(_message.Message):
    __slots__ = ("pause_id", "workspace", "pool", "version", "requested_by")
    PAUSE_ID_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BY_FIELD_NUMBER: _ClassVar[int]
    pause_id: str
    workspace: str
    pool: str
    version: int
    requested_by: _common_pb2.Actor
    def __init__(self, pause_id: _Optional[str] = ..., workspace: _Optional[str] = ..., pool: _Optional[str] = ..., version: _Optional[int] = ..., requested_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ...) -> None: ...

class DispatchResumed(_message.Message):
    __slots__ = ("pause_id", "version", "requested_by")
    PAUSE_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BY_FIELD_NUMBER: _ClassVar[int]
    pause_id: str
    version: int
    requested_by: _common_pb2.Actor
    def __init__(self, pause_id: _Optional[str] = ..., version: _Optional[int] = ..., requested_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ...) -> None: ...

class WorkerCommanded(_message.Message):
    __slots__ = ("worker_id", "command", "version", "deadline", "requested_by")
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BY_FIELD_NUMBER: _ClassVar[int]
    worker_id: str
    command: _worker_pb2.WorkerCommand
    version: int
    deadline: _timestamp_pb2.Timestamp
    requested_by: _common_pb2.Actor
    def __init__(self, worker_id: _Optional[str] = ..., command: _Optional[_Union[_worker_pb2.WorkerCommand, str]] = ..., version: _Optional[int] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., requested_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ...) -> None: ...

class DeploymentRegistered(_message.Message):
    __slots__ = ("deployment_id", "version", "manifest_digest", "manifest_uri", "artifact_digest", "code_version", "asset_count", "deployed_by")
    DEPLOYMENT_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_DIGEST_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_URI_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    CODE_VERSION_FIELD_NUMBER: _ClassVar[int]
    ASSET_COUNT_FIELD_NUMBER: _ClassVar[int]
    DEPLOYED_BY_FIELD_NUMBER: _ClassVar[int]
    deployment_id: str
    version: int
    manifest_digest: str
    manifest_uri: str
    artifact_digest: str
    code_version: str
    asset_count: int
    deployed_by: _common_pb2.Actor
    def __init__(self, deployment_id: _Optional[str] = ..., version: _Optional[int] = ..., manifest_digest: _Optional[str] = ..., manifest_uri: _Optional[str] = ..., artifact_digest: _Optional[str] = ..., code_version: _Optional[str] = ..., asset_count: _Optional[int] = ..., deployed_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ...) -> None: ...

class QuotaChanged(_message.Message):
    __slots__ = ("subject", "version", "limits", "pool", "budget", "prices", "deleted", "changed_by")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    PRICES_FIELD_NUMBER: _ClassVar[int]
    DELETED_FIELD_NUMBER: _ClassVar[int]
    CHANGED_BY_FIELD_NUMBER: _ClassVar[int]
    subject: str
    version: int
    limits: _quota_model_pb2.QuotaLimits
    pool: _quota_model_pb2.Pool
    budget: _quota_model_pb2.Budget
    prices: _quota_model_pb2.PriceList
    deleted: bool
    changed_by: _common_pb2.Actor
    def __init__(self, subject: _Optional[str] = ..., version: _Optional[int] = ..., limits: _Optional[_Union[_quota_model_pb2.QuotaLimits, _Mapping]] = ..., pool: _Optional[_Union[_quota_model_pb2.Pool, _Mapping]] = ..., budget: _Optional[_Union[_quota_model_pb2.Budget, _Mapping]] = ..., prices: _Optional[_Union[_quota_model_pb2.PriceList, _Mapping]] = ..., deleted: bool = ..., changed_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ...) -> None: ...

class DynamicPartitionsChanged(_message.Message):
    __slots__ = ("set", "version", "added", "removed", "changed_by")
    SET_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ADDED_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    CHANGED_BY_FIELD_NUMBER: _ClassVar[int]
    set: str
    version: int
    added: _containers.RepeatedScalarFieldContainer[str]
    removed: _containers.RepeatedScalarFieldContainer[str]
    changed_by: _common_pb2.Actor
    def __init__(self, set: _Optional[str] = ..., version: _Optional[int] = ..., added: _Optional[_Iterable[str]] = ..., removed: _Optional[_Iterable[str]] = ..., changed_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ...) -> None: ...
