import datetime

from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import common_pb2 as _common_pb2
from servo.v1 import options_pb2 as _options_pb2
from servo.v1 import state_pb2 as _state_pb2
from servo.v1 import worker_pb2 as _worker_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class QueueEntryState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    QUEUE_ENTRY_STATE_UNSPECIFIED: _ClassVar[QueueEntryState]
    QUEUE_ENTRY_STATE_PENDING: _ClassVar[QueueEntryState]
    QUEUE_ENTRY_STATE_CREATED: _ClassVar[QueueEntryState]
    QUEUE_ENTRY_STATE_ACKED: _ClassVar[QueueEntryState]
    QUEUE_ENTRY_STATE_FAILED: _ClassVar[QueueEntryState]
    QUEUE_ENTRY_STATE_CANCELLED: _ClassVar[QueueEntryState]
QUEUE_ENTRY_STATE_UNSPECIFIED: QueueEntryState
QUEUE_ENTRY_STATE_PENDING: QueueEntryState
QUEUE_ENTRY_STATE_CREATED: QueueEntryState
QUEUE_ENTRY_STATE_ACKED: QueueEntryState
QUEUE_ENTRY_STATE_FAILED: QueueEntryState
QUEUE_ENTRY_STATE_CANCELLED: QueueEntryState

class RegisterWorkerRequest(_message.Message):
    __slots__ = ("tenant", "worker_id", "session", "info")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    INFO_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    worker_id: str
    session: str
    info: _worker_pb2.WorkerInfo
    def __init__(self, tenant: _Optional[str] = ..., worker_id: _Optional[str] = ..., session: _Optional[str] = ..., info: _Optional[_Union[_worker_pb2.WorkerInfo, _Mapping]] = ...) -> None: ...

class RegisterWorkerResponse(_message.Message):
    __slots__ = ("address", "envelope_key", "envelope_key_id", "renew_before", "heartbeat_interval")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_KEY_FIELD_NUMBER: _ClassVar[int]
    ENVELOPE_KEY_ID_FIELD_NUMBER: _ClassVar[int]
    RENEW_BEFORE_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    address: str
    envelope_key: bytes
    envelope_key_id: str
    renew_before: _timestamp_pb2.Timestamp
    heartbeat_interval: _duration_pb2.Duration
    def __init__(self, address: _Optional[str] = ..., envelope_key: _Optional[bytes] = ..., envelope_key_id: _Optional[str] = ..., renew_before: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., heartbeat_interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class PullTasksRequest(_message.Message):
    __slots__ = ("tenant", "worker_id", "open", "credits", "returned", "leave")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    RETURNED_FIELD_NUMBER: _ClassVar[int]
    LEAVE_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    worker_id: str
    open: PullOpen
    credits: PullCredits
    returned: PullReturn
    leave: PullLeave
    def __init__(self, tenant: _Optional[str] = ..., worker_id: _Optional[str] = ..., open: _Optional[_Union[PullOpen, _Mapping]] = ..., credits: _Optional[_Union[PullCredits, _Mapping]] = ..., returned: _Optional[_Union[PullReturn, _Mapping]] = ..., leave: _Optional[_Union[PullLeave, _Mapping]] = ...) -> None: ...

class PullOpen(_message.Message):
    __slots__ = ("session", "attempt_ids", "credits")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_IDS_FIELD_NUMBER: _ClassVar[int]
    CREDITS_FIELD_NUMBER: _ClassVar[int]
    session: str
    attempt_ids: _containers.RepeatedScalarFieldContainer[str]
    credits: int
    def __init__(self, session: _Optional[str] = ..., attempt_ids: _Optional[_Iterable[str]] = ..., credits: _Optional[int] = ...) -> None: ...

class PullCredits(_message.Message):
    __slots__ = ("count",)
    COUNT_FIELD_NUMBER: _ClassVar[int]
    count: int
    def __init__(self, count: _Optional[int] = ...) -> None: ...

class PullReturn(_message.Message):
    __slots__ = ("attempt_ids", "comment")
    ATTEMPT_IDS_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    attempt_ids: _containers.RepeatedScalarFieldContainer[str]
    comment: str
    def __init__(self, attempt_ids: _Optional[_Iterable[str]] = ..., comment: _Optional[str] = ...) -> None: ...

class PullLeave(_message.Message):
    __slots__ = ("comment",)
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    comment: str
    def __init__(self, comment: _Optional[str] = ...) -> None: ...

class PullTasksResponse(_message.Message):
    __slots__ = ("envelopes", "cancels", "moved", "drain", "idle")
    ENVELOPES_FIELD_NUMBER: _ClassVar[int]
    CANCELS_FIELD_NUMBER: _ClassVar[int]
    MOVED_FIELD_NUMBER: _ClassVar[int]
    DRAIN_FIELD_NUMBER: _ClassVar[int]
    IDLE_FIELD_NUMBER: _ClassVar[int]
    envelopes: EnvelopeBatch
    cancels: CancelBatch
    moved: PullMoved
    drain: PullDrain
    idle: PullIdle
    def __init__(self, envelopes: _Optional[_Union[EnvelopeBatch, _Mapping]] = ..., cancels: _Optional[_Union[CancelBatch, _Mapping]] = ..., moved: _Optional[_Union[PullMoved, _Mapping]] = ..., drain: _Optional[_Union[PullDrain, _Mapping]] = ..., idle: _Optional[_Union[PullIdle, _Mapping]] = ...) -> None: ...

class EnvelopeBatch(_message.Message):
    __slots__ = ("envelopes",)
    ENVELOPES_FIELD_NUMBER: _ClassVar[int]
    envelopes: _containers.RepeatedCompositeFieldContainer[_worker_pb2.SignedEnvelope]
    def __init__(self, envelopes: _Optional[_Iterable[_Union[_worker_pb2.SignedEnvelope, _Mapping]]] = ...) -> None: ...

class CancelBatch(_message.Message):
    __slots__ = ("attempt_ids", "grace")
    ATTEMPT_IDS_FIELD_NUMBER: _ClassVar[int]
    GRACE_FIELD_NUMBER: _ClassVar[int]
    attempt_ids: _containers.RepeatedScalarFieldContainer[str]
    grace: _duration_pb2.Duration
    def __init__(self, attempt_ids: _Optional[_Iterable[str]] = ..., grace: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class PullMoved(_message.Message):
    __slots__ = ("address",)
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    address: str
    def __init__(self, address: _Optional[str] = ...) -> None: ...

class PullDrain(_message.Message):
    __slots__ = ("deadline", "kill")
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    KILL_FIELD_NUMBER: _ClassVar[int]
    deadline: _timestamp_pb2.Timestamp
    kill: bool
    def __init__(self, deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., kill: bool = ...) -> None: ...

class PullIdle(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListWorkersRequest(_message.Message):
    __slots__ = ("tenant", "page_size", "page_token", "filter")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    page_size: int
    page_token: str
    filter: str
    def __init__(self, tenant: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ...) -> None: ...

class ListWorkersResponse(_message.Message):
    __slots__ = ("workers", "next_page_token")
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    workers: _containers.RepeatedCompositeFieldContainer[_worker_pb2.Worker]
    next_page_token: str
    def __init__(self, workers: _Optional[_Iterable[_Union[_worker_pb2.Worker, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DrainWorkerRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "worker_id", "expected_version", "grace", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    GRACE_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    worker_id: str
    expected_version: int
    grace: _duration_pb2.Duration
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., worker_id: _Optional[str] = ..., expected_version: _Optional[int] = ..., grace: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., comment: _Optional[str] = ...) -> None: ...

class DrainWorkerResponse(_message.Message):
    __slots__ = ("worker", "accepted_event_id")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    worker: _worker_pb2.Worker
    accepted_event_id: str
    def __init__(self, worker: _Optional[_Union[_worker_pb2.Worker, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class KillWorkerRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "worker_id", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    worker_id: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., worker_id: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class KillWorkerResponse(_message.Message):
    __slots__ = ("worker", "accepted_event_id")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    worker: _worker_pb2.Worker
    accepted_event_id: str
    def __init__(self, worker: _Optional[_Union[_worker_pb2.Worker, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class PauseDispatchRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "workspace", "pool", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    workspace: str
    pool: str
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., workspace: _Optional[str] = ..., pool: _Optional[str] = ..., comment: _Optional[str] = ...) -> None: ...

class PauseDispatchResponse(_message.Message):
    __slots__ = ("pause", "accepted_event_id")
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    pause: DispatchPause
    accepted_event_id: str
    def __init__(self, pause: _Optional[_Union[DispatchPause, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class ResumeDispatchRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "pause_id", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PAUSE_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    pause_id: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., pause_id: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class ResumeDispatchResponse(_message.Message):
    __slots__ = ("accepted_event_id",)
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    accepted_event_id: str
    def __init__(self, accepted_event_id: _Optional[str] = ...) -> None: ...

class ListDispatchPausesRequest(_message.Message):
    __slots__ = ("tenant", "page_size", "page_token")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    page_size: int
    page_token: str
    def __init__(self, tenant: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListDispatchPausesResponse(_message.Message):
    __slots__ = ("pauses", "next_page_token")
    PAUSES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    pauses: _containers.RepeatedCompositeFieldContainer[DispatchPause]
    next_page_token: str
    def __init__(self, pauses: _Optional[_Iterable[_Union[DispatchPause, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DispatchPause(_message.Message):
    __slots__ = ("pause_id", "tenant", "workspace", "pool", "version", "requested_by", "start_time")
    PAUSE_ID_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BY_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    pause_id: str
    tenant: str
    workspace: str
    pool: str
    version: int
    requested_by: _common_pb2.Actor
    start_time: _timestamp_pb2.Timestamp
    def __init__(self, pause_id: _Optional[str] = ..., tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., pool: _Optional[str] = ..., version: _Optional[int] = ..., requested_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ListDispatchesRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "page_size", "page_token", "filter")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    page_size: int
    page_token: str
    filter: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ...) -> None: ...

class ListDispatchesResponse(_message.Message):
    __slots__ = ("dispatches", "next_page_token")
    DISPATCHES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    dispatches: _containers.RepeatedCompositeFieldContainer[Dispatch]
    next_page_token: str
    def __init__(self, dispatches: _Optional[_Iterable[_Union[Dispatch, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Dispatch(_message.Message):
    __slots__ = ("dispatch_id", "attempt_id", "attempt", "run_id", "task_id", "task_key", "mode", "state", "queue", "worker_id", "pool", "dispatch_time", "deliveries")
    DISPATCH_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_KEY_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    DISPATCH_TIME_FIELD_NUMBER: _ClassVar[int]
    DELIVERIES_FIELD_NUMBER: _ClassVar[int]
    dispatch_id: str
    attempt_id: str
    attempt: int
    run_id: str
    task_id: str
    task_key: str
    mode: _state_pb2.DispatchMode
    state: QueueEntryState
    queue: str
    worker_id: str
    pool: str
    dispatch_time: _timestamp_pb2.Timestamp
    deliveries: int
    def __init__(self, dispatch_id: _Optional[str] = ..., attempt_id: _Optional[str] = ..., attempt: _Optional[int] = ..., run_id: _Optional[str] = ..., task_id: _Optional[str] = ..., task_key: _Optional[str] = ..., mode: _Optional[_Union[_state_pb2.DispatchMode, str]] = ..., state: _Optional[_Union[QueueEntryState, str]] = ..., queue: _Optional[str] = ..., worker_id: _Optional[str] = ..., pool: _Optional[str] = ..., dispatch_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., deliveries: _Optional[int] = ...) -> None: ...
