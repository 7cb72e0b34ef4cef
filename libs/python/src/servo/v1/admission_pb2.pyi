import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import common_pb2 as _common_pb2
from servo.v1 import error_pb2 as _error_pb2
from servo.v1 import event_execution_pb2 as _event_execution_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AdmitRequest(_message.Message):
    __slots__ = ("open", "claims", "enqueued", "returned")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    ENQUEUED_FIELD_NUMBER: _ClassVar[int]
    RETURNED_FIELD_NUMBER: _ClassVar[int]
    open: AdmitOpen
    claims: ClaimBatch
    enqueued: EnqueuedBatch
    returned: ReturnedBatch
    def __init__(self, open: _Optional[_Union[AdmitOpen, _Mapping]] = ..., claims: _Optional[_Union[ClaimBatch, _Mapping]] = ..., enqueued: _Optional[_Union[EnqueuedBatch, _Mapping]] = ..., returned: _Optional[_Union[ReturnedBatch, _Mapping]] = ...) -> None: ...

class AdmitOpen(_message.Message):
    __slots__ = ("leases",)
    LEASES_FIELD_NUMBER: _ClassVar[int]
    leases: _containers.RepeatedCompositeFieldContainer[AdmissionLease]
    def __init__(self, leases: _Optional[_Iterable[_Union[AdmissionLease, _Mapping]]] = ...) -> None: ...

class AdmissionLease(_message.Message):
    __slots__ = ("admission_shard", "epoch")
    ADMISSION_SHARD_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    admission_shard: int
    epoch: int
    def __init__(self, admission_shard: _Optional[int] = ..., epoch: _Optional[int] = ...) -> None: ...

class ClaimBatch(_message.Message):
    __slots__ = ("number", "claims")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    CLAIMS_FIELD_NUMBER: _ClassVar[int]
    number: int
    claims: _containers.RepeatedCompositeFieldContainer[Claim]
    def __init__(self, number: _Optional[int] = ..., claims: _Optional[_Iterable[_Union[Claim, _Mapping]]] = ...) -> None: ...

class Claim(_message.Message):
    __slots__ = ("tenant", "run_id", "task", "attempt", "admission_epoch", "mode", "worker_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    ADMISSION_EPOCH_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    run_id: str
    task: _common_pb2.TaskRef
    attempt: int
    admission_epoch: int
    mode: _event_execution_pb2.DispatchMode
    worker_id: str
    def __init__(self, tenant: _Optional[str] = ..., run_id: _Optional[str] = ..., task: _Optional[_Union[_common_pb2.TaskRef, _Mapping]] = ..., attempt: _Optional[int] = ..., admission_epoch: _Optional[int] = ..., mode: _Optional[_Union[_event_execution_pb2.DispatchMode, str]] = ..., worker_id: _Optional[str] = ...) -> None: ...

class EnqueuedBatch(_message.Message):
    __slots__ = ("entries",)
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[_event_execution_pb2.DispatchEnqueued]
    def __init__(self, entries: _Optional[_Iterable[_Union[_event_execution_pb2.DispatchEnqueued, _Mapping]]] = ...) -> None: ...

class ReturnedBatch(_message.Message):
    __slots__ = ("entries",)
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[ReturnedAttempt]
    def __init__(self, entries: _Optional[_Iterable[_Union[ReturnedAttempt, _Mapping]]] = ...) -> None: ...

class ReturnedAttempt(_message.Message):
    __slots__ = ("tenant", "run_id", "task", "attempt_id", "worker_id", "error")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    run_id: str
    task: _common_pb2.TaskRef
    attempt_id: str
    worker_id: str
    error: _common_pb2.TaskError
    def __init__(self, tenant: _Optional[str] = ..., run_id: _Optional[str] = ..., task: _Optional[_Union[_common_pb2.TaskRef, _Mapping]] = ..., attempt_id: _Optional[str] = ..., worker_id: _Optional[str] = ..., error: _Optional[_Union[_common_pb2.TaskError, _Mapping]] = ...) -> None: ...

class AdmitResponse(_message.Message):
    __slots__ = ("snapshot", "update", "results", "gone", "announcement")
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    UPDATE_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    GONE_FIELD_NUMBER: _ClassVar[int]
    ANNOUNCEMENT_FIELD_NUMBER: _ClassVar[int]
    snapshot: AdmitSnapshot
    update: AdmitUpdate
    results: ClaimResults
    gone: AdmitGone
    announcement: AdmitAnnouncement
    def __init__(self, snapshot: _Optional[_Union[AdmitSnapshot, _Mapping]] = ..., update: _Optional[_Union[AdmitUpdate, _Mapping]] = ..., results: _Optional[_Union[ClaimResults, _Mapping]] = ..., gone: _Optional[_Union[AdmitGone, _Mapping]] = ..., announcement: _Optional[_Union[AdmitAnnouncement, _Mapping]] = ...) -> None: ...

class AdmitAnnouncement(_message.Message):
    __slots__ = ("plans",)
    PLANS_FIELD_NUMBER: _ClassVar[int]
    plans: _containers.RepeatedCompositeFieldContainer[PlanName]
    def __init__(self, plans: _Optional[_Iterable[_Union[PlanName, _Mapping]]] = ...) -> None: ...

class PlanName(_message.Message):
    __slots__ = ("tenant", "workspace", "plan_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    PLAN_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    plan_id: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., plan_id: _Optional[str] = ...) -> None: ...

class AdmitSnapshot(_message.Message):
    __slots__ = ("shard", "epoch", "first", "last", "ready", "live")
    SHARD_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    shard: int
    epoch: int
    first: bool
    last: bool
    ready: _containers.RepeatedCompositeFieldContainer[ReadyRun]
    live: _containers.RepeatedCompositeFieldContainer[LiveAttempt]
    def __init__(self, shard: _Optional[int] = ..., epoch: _Optional[int] = ..., first: bool = ..., last: bool = ..., ready: _Optional[_Iterable[_Union[ReadyRun, _Mapping]]] = ..., live: _Optional[_Iterable[_Union[LiveAttempt, _Mapping]]] = ...) -> None: ...

class AdmitUpdate(_message.Message):
    __slots__ = ("shard", "ready", "withdrawn", "ended", "cancelled")
    SHARD_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    WITHDRAWN_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_FIELD_NUMBER: _ClassVar[int]
    shard: int
    ready: _containers.RepeatedCompositeFieldContainer[ReadyRun]
    withdrawn: _containers.RepeatedCompositeFieldContainer[WithdrawnRun]
    ended: _containers.RepeatedCompositeFieldContainer[EndedAttempt]
    cancelled: _containers.RepeatedCompositeFieldContainer[LiveAttempt]
    def __init__(self, shard: _Optional[int] = ..., ready: _Optional[_Iterable[_Union[ReadyRun, _Mapping]]] = ..., withdrawn: _Optional[_Iterable[_Union[WithdrawnRun, _Mapping]]] = ..., ended: _Optional[_Iterable[_Union[EndedAttempt, _Mapping]]] = ..., cancelled: _Optional[_Iterable[_Union[LiveAttempt, _Mapping]]] = ...) -> None: ...

class ReadyRun(_message.Message):
    __slots__ = ("tenant", "workspace", "run_id", "plan_id", "priority", "backfill", "trace", "tasks")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PLAN_ID_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    BACKFILL_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    run_id: str
    plan_id: str
    priority: int
    backfill: bool
    trace: _common_pb2.TraceContext
    tasks: _containers.RepeatedCompositeFieldContainer[ReadyTask]
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., run_id: _Optional[str] = ..., plan_id: _Optional[str] = ..., priority: _Optional[int] = ..., backfill: bool = ..., trace: _Optional[_Union[_common_pb2.TraceContext, _Mapping]] = ..., tasks: _Optional[_Iterable[_Union[ReadyTask, _Mapping]]] = ...) -> None: ...

class ReadyTask(_message.Message):
    __slots__ = ("task", "attempt", "failures", "ready_time", "item_json")
    TASK_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    READY_TIME_FIELD_NUMBER: _ClassVar[int]
    ITEM_JSON_FIELD_NUMBER: _ClassVar[int]
    task: _common_pb2.TaskRef
    attempt: int
    failures: int
    ready_time: _timestamp_pb2.Timestamp
    item_json: str
    def __init__(self, task: _Optional[_Union[_common_pb2.TaskRef, _Mapping]] = ..., attempt: _Optional[int] = ..., failures: _Optional[int] = ..., ready_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., item_json: _Optional[str] = ...) -> None: ...

class WithdrawnRun(_message.Message):
    __slots__ = ("tenant", "run_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    run_id: str
    def __init__(self, tenant: _Optional[str] = ..., run_id: _Optional[str] = ...) -> None: ...

class LiveAttempt(_message.Message):
    __slots__ = ("tenant", "workspace", "run_id", "plan_id", "task", "attempt_id", "attempt", "mode", "worker_id", "claim_time", "cancelling", "backfill", "waiting")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PLAN_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    WORKER_ID_FIELD_NUMBER: _ClassVar[int]
    CLAIM_TIME_FIELD_NUMBER: _ClassVar[int]
    CANCELLING_FIELD_NUMBER: _ClassVar[int]
    BACKFILL_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    run_id: str
    plan_id: str
    task: _common_pb2.TaskRef
    attempt_id: str
    attempt: int
    mode: _event_execution_pb2.DispatchMode
    worker_id: str
    claim_time: _timestamp_pb2.Timestamp
    cancelling: bool
    backfill: bool
    waiting: PushOrder
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., run_id: _Optional[str] = ..., plan_id: _Optional[str] = ..., task: _Optional[_Union[_common_pb2.TaskRef, _Mapping]] = ..., attempt_id: _Optional[str] = ..., attempt: _Optional[int] = ..., mode: _Optional[_Union[_event_execution_pb2.DispatchMode, str]] = ..., worker_id: _Optional[str] = ..., claim_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., cancelling: bool = ..., backfill: bool = ..., waiting: _Optional[_Union[PushOrder, _Mapping]] = ...) -> None: ...

class PushOrder(_message.Message):
    __slots__ = ("failures", "item_json", "trace")
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    ITEM_JSON_FIELD_NUMBER: _ClassVar[int]
    TRACE_FIELD_NUMBER: _ClassVar[int]
    failures: int
    item_json: str
    trace: _common_pb2.TraceContext
    def __init__(self, failures: _Optional[int] = ..., item_json: _Optional[str] = ..., trace: _Optional[_Union[_common_pb2.TraceContext, _Mapping]] = ...) -> None: ...

class EndedAttempt(_message.Message):
    __slots__ = ("tenant", "attempt_id", "slot_ms")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    SLOT_MS_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    attempt_id: str
    slot_ms: int
    def __init__(self, tenant: _Optional[str] = ..., attempt_id: _Optional[str] = ..., slot_ms: _Optional[int] = ...) -> None: ...

class ClaimResults(_message.Message):
    __slots__ = ("number", "refused")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    number: int
    refused: _containers.RepeatedCompositeFieldContainer[RefusedClaim]
    def __init__(self, number: _Optional[int] = ..., refused: _Optional[_Iterable[_Union[RefusedClaim, _Mapping]]] = ...) -> None: ...

class RefusedClaim(_message.Message):
    __slots__ = ("index", "reason", "message")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    index: int
    reason: _error_pb2.ErrorReason
    message: str
    def __init__(self, index: _Optional[int] = ..., reason: _Optional[_Union[_error_pb2.ErrorReason, str]] = ..., message: _Optional[str] = ...) -> None: ...

class AdmitGone(_message.Message):
    __slots__ = ("shard",)
    SHARD_FIELD_NUMBER: _ClassVar[int]
    shard: int
    def __init__(self, shard: _Optional[int] = ...) -> None: ...
