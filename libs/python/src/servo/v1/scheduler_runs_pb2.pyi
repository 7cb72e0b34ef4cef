import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import event_pb2 as _event_pb2
from servo.v1 import run_pb2 as _run_pb2
from servo.v1 import run_spec_pb2 as _run_spec_pb2
from servo.v1 import state_pb2 as _state_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RunKeyPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_KEY_POLICY_UNSPECIFIED: _ClassVar[RunKeyPolicy]
    RUN_KEY_POLICY_RETURN_EXISTING: _ClassVar[RunKeyPolicy]
    RUN_KEY_POLICY_REJECT: _ClassVar[RunKeyPolicy]
    RUN_KEY_POLICY_RETRY_IF_FAILED: _ClassVar[RunKeyPolicy]
    RUN_KEY_POLICY_FORCE: _ClassVar[RunKeyPolicy]

class RetryScope(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RETRY_SCOPE_UNSPECIFIED: _ClassVar[RetryScope]
    RETRY_SCOPE_FAILED: _ClassVar[RetryScope]
    RETRY_SCOPE_FROM_TASKS: _ClassVar[RetryScope]
    RETRY_SCOPE_ALL: _ClassVar[RetryScope]

class WaitReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WAIT_REASON_UNSPECIFIED: _ClassVar[WaitReason]
    WAIT_REASON_RUNNING: _ClassVar[WaitReason]
    WAIT_REASON_ENDED: _ClassVar[WaitReason]
    WAIT_REASON_PLANNING: _ClassVar[WaitReason]
    WAIT_REASON_RUN_LIMIT: _ClassVar[WaitReason]
    WAIT_REASON_RUN_PAUSED: _ClassVar[WaitReason]
    WAIT_REASON_SET_ASIDE: _ClassVar[WaitReason]
    WAIT_REASON_UPSTREAM: _ClassVar[WaitReason]
    WAIT_REASON_ITEMS: _ClassVar[WaitReason]
    WAIT_REASON_RETRY_DELAY: _ClassVar[WaitReason]
    WAIT_REASON_DISPATCH_PAUSED: _ClassVar[WaitReason]
    WAIT_REASON_TASK_LIMIT: _ClassVar[WaitReason]
    WAIT_REASON_POOL_FULL: _ClassVar[WaitReason]
    WAIT_REASON_BACKFILL_CAP: _ClassVar[WaitReason]
    WAIT_REASON_BUDGET_SPENT: _ClassVar[WaitReason]
    WAIT_REASON_NO_WORKER: _ClassVar[WaitReason]
    WAIT_REASON_NO_CAPABLE_WORKER: _ClassVar[WaitReason]
    WAIT_REASON_FAIR_SHARE: _ClassVar[WaitReason]
    WAIT_REASON_WORKER_START: _ClassVar[WaitReason]
    WAIT_REASON_CANCELLING: _ClassVar[WaitReason]
    WAIT_REASON_SUSPENDED: _ClassVar[WaitReason]
RUN_KEY_POLICY_UNSPECIFIED: RunKeyPolicy
RUN_KEY_POLICY_RETURN_EXISTING: RunKeyPolicy
RUN_KEY_POLICY_REJECT: RunKeyPolicy
RUN_KEY_POLICY_RETRY_IF_FAILED: RunKeyPolicy
RUN_KEY_POLICY_FORCE: RunKeyPolicy
RETRY_SCOPE_UNSPECIFIED: RetryScope
RETRY_SCOPE_FAILED: RetryScope
RETRY_SCOPE_FROM_TASKS: RetryScope
RETRY_SCOPE_ALL: RetryScope
WAIT_REASON_UNSPECIFIED: WaitReason
WAIT_REASON_RUNNING: WaitReason
WAIT_REASON_ENDED: WaitReason
WAIT_REASON_PLANNING: WaitReason
WAIT_REASON_RUN_LIMIT: WaitReason
WAIT_REASON_RUN_PAUSED: WaitReason
WAIT_REASON_SET_ASIDE: WaitReason
WAIT_REASON_UPSTREAM: WaitReason
WAIT_REASON_ITEMS: WaitReason
WAIT_REASON_RETRY_DELAY: WaitReason
WAIT_REASON_DISPATCH_PAUSED: WaitReason
WAIT_REASON_TASK_LIMIT: WaitReason
WAIT_REASON_POOL_FULL: WaitReason
WAIT_REASON_BACKFILL_CAP: WaitReason
WAIT_REASON_BUDGET_SPENT: WaitReason
WAIT_REASON_NO_WORKER: WaitReason
WAIT_REASON_NO_CAPABLE_WORKER: WaitReason
WAIT_REASON_FAIR_SHARE: WaitReason
WAIT_REASON_WORKER_START: WaitReason
WAIT_REASON_CANCELLING: WaitReason
WAIT_REASON_SUSPENDED: WaitReason

class TriggerRunRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "run_key", "run_key_policy", "spec", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_KEY_FIELD_NUMBER: _ClassVar[int]
    RUN_KEY_POLICY_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    run_key: str
    run_key_policy: RunKeyPolicy
    spec: _run_spec_pb2.RunSpec
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., run_key: _Optional[str] = ..., run_key_policy: _Optional[_Union[RunKeyPolicy, str]] = ..., spec: _Optional[_Union[_run_spec_pb2.RunSpec, _Mapping]] = ..., comment: _Optional[str] = ...) -> None: ...

class TriggerRunResponse(_message.Message):
    __slots__ = ("run", "existing", "accepted_event_id")
    RUN_FIELD_NUMBER: _ClassVar[int]
    EXISTING_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    run: _run_pb2.Run
    existing: bool
    accepted_event_id: str
    def __init__(self, run: _Optional[_Union[_run_pb2.Run, _Mapping]] = ..., existing: bool = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class GetRunRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "run_id", "wait_for_event_id", "include_history")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_FOR_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_HISTORY_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    run_id: str
    wait_for_event_id: str
    include_history: bool
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., run_id: _Optional[str] = ..., wait_for_event_id: _Optional[str] = ..., include_history: bool = ...) -> None: ...

class GetRunResponse(_message.Message):
    __slots__ = ("run", "history")
    RUN_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    run: _run_pb2.Run
    history: _containers.RepeatedCompositeFieldContainer[_run_pb2.RunTransition]
    def __init__(self, run: _Optional[_Union[_run_pb2.Run, _Mapping]] = ..., history: _Optional[_Iterable[_Union[_run_pb2.RunTransition, _Mapping]]] = ...) -> None: ...

class ListRunsRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "page_size", "page_token", "filter", "order_by", "wait_for_event_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    ORDER_BY_FIELD_NUMBER: _ClassVar[int]
    WAIT_FOR_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    page_size: int
    page_token: str
    filter: str
    order_by: str
    wait_for_event_id: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ..., order_by: _Optional[str] = ..., wait_for_event_id: _Optional[str] = ...) -> None: ...

class ListRunsResponse(_message.Message):
    __slots__ = ("runs", "next_page_token")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[_run_pb2.Run]
    next_page_token: str
    def __init__(self, runs: _Optional[_Iterable[_Union[_run_pb2.Run, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CancelRunRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "run_id", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    run_id: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., run_id: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class CancelRunResponse(_message.Message):
    __slots__ = ("run", "accepted_event_id")
    RUN_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    run: _run_pb2.Run
    accepted_event_id: str
    def __init__(self, run: _Optional[_Union[_run_pb2.Run, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class PauseRunRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "run_id", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    run_id: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., run_id: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class PauseRunResponse(_message.Message):
    __slots__ = ("run", "accepted_event_id")
    RUN_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    run: _run_pb2.Run
    accepted_event_id: str
    def __init__(self, run: _Optional[_Union[_run_pb2.Run, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class ResumeRunRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "run_id", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    run_id: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., run_id: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class ResumeRunResponse(_message.Message):
    __slots__ = ("run", "accepted_event_id")
    RUN_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    run: _run_pb2.Run
    accepted_event_id: str
    def __init__(self, run: _Optional[_Union[_run_pb2.Run, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class RetryRunRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "run_id", "scope", "task_ids", "use_current_deployment", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    USE_CURRENT_DEPLOYMENT_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    run_id: str
    scope: RetryScope
    task_ids: _containers.RepeatedScalarFieldContainer[str]
    use_current_deployment: bool
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., run_id: _Optional[str] = ..., scope: _Optional[_Union[RetryScope, str]] = ..., task_ids: _Optional[_Iterable[str]] = ..., use_current_deployment: bool = ..., comment: _Optional[str] = ...) -> None: ...

class RetryRunResponse(_message.Message):
    __slots__ = ("run", "accepted_event_id")
    RUN_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    run: _run_pb2.Run
    accepted_event_id: str
    def __init__(self, run: _Optional[_Union[_run_pb2.Run, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class GetTaskRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "run_id", "task_id", "wait_for_event_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    WAIT_FOR_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    run_id: str
    task_id: str
    wait_for_event_id: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., run_id: _Optional[str] = ..., task_id: _Optional[str] = ..., wait_for_event_id: _Optional[str] = ...) -> None: ...

class GetTaskResponse(_message.Message):
    __slots__ = ("task", "attempts", "history")
    TASK_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    task: _run_pb2.Task
    attempts: _containers.RepeatedCompositeFieldContainer[_run_pb2.Attempt]
    history: _containers.RepeatedCompositeFieldContainer[_run_pb2.TaskTransition]
    def __init__(self, task: _Optional[_Union[_run_pb2.Task, _Mapping]] = ..., attempts: _Optional[_Iterable[_Union[_run_pb2.Attempt, _Mapping]]] = ..., history: _Optional[_Iterable[_Union[_run_pb2.TaskTransition, _Mapping]]] = ...) -> None: ...

class ListTasksRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "run_id", "page_size", "page_token", "filter", "wait_for_event_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    WAIT_FOR_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    run_id: str
    page_size: int
    page_token: str
    filter: str
    wait_for_event_id: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., run_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ..., wait_for_event_id: _Optional[str] = ...) -> None: ...

class ListTasksResponse(_message.Message):
    __slots__ = ("tasks", "next_page_token")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[_run_pb2.Task]
    next_page_token: str
    def __init__(self, tasks: _Optional[_Iterable[_Union[_run_pb2.Task, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ForceCancelTaskRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "run_id", "task_id", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    run_id: str
    task_id: str
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., run_id: _Optional[str] = ..., task_id: _Optional[str] = ..., comment: _Optional[str] = ...) -> None: ...

class ForceCancelTaskResponse(_message.Message):
    __slots__ = ("task", "accepted_event_id")
    TASK_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    task: _run_pb2.Task
    accepted_event_id: str
    def __init__(self, task: _Optional[_Union[_run_pb2.Task, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "run_id", "task_id", "page_size", "page_token")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    run_id: str
    task_id: str
    page_size: int
    page_token: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., run_id: _Optional[str] = ..., task_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ExplainResponse(_message.Message):
    __slots__ = ("explanations", "next_page_token")
    EXPLANATIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    explanations: _containers.RepeatedCompositeFieldContainer[Explanation]
    next_page_token: str
    def __init__(self, explanations: _Optional[_Iterable[_Union[Explanation, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Explanation(_message.Message):
    __slots__ = ("task_id", "task_key", "state", "reason", "message", "blockers", "limit", "used", "until_time", "position")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_KEY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    BLOCKERS_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    UNTIL_TIME_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    task_key: str
    state: _state_pb2.TaskState
    reason: WaitReason
    message: str
    blockers: _containers.RepeatedCompositeFieldContainer[Blocker]
    limit: int
    used: int
    until_time: _timestamp_pb2.Timestamp
    position: int
    def __init__(self, task_id: _Optional[str] = ..., task_key: _Optional[str] = ..., state: _Optional[_Union[_state_pb2.TaskState, str]] = ..., reason: _Optional[_Union[WaitReason, str]] = ..., message: _Optional[str] = ..., blockers: _Optional[_Iterable[_Union[Blocker, _Mapping]]] = ..., limit: _Optional[int] = ..., used: _Optional[int] = ..., until_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., position: _Optional[int] = ...) -> None: ...

class Blocker(_message.Message):
    __slots__ = ("kind", "id", "detail")
    KIND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    kind: str
    id: str
    detail: str
    def __init__(self, kind: _Optional[str] = ..., id: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...

class WatchRunRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "run_id", "resume_token", "include_events")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_EVENTS_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    run_id: str
    resume_token: str
    include_events: bool
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., run_id: _Optional[str] = ..., resume_token: _Optional[str] = ..., include_events: bool = ...) -> None: ...

class WatchRunResponse(_message.Message):
    __slots__ = ("resume_token", "run", "tasks", "events", "caught_up")
    RESUME_TOKEN_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    CAUGHT_UP_FIELD_NUMBER: _ClassVar[int]
    resume_token: str
    run: _run_pb2.Run
    tasks: _containers.RepeatedCompositeFieldContainer[_run_pb2.Task]
    events: _containers.RepeatedCompositeFieldContainer[_event_pb2.EventRecord]
    caught_up: bool
    def __init__(self, resume_token: _Optional[str] = ..., run: _Optional[_Union[_run_pb2.Run, _Mapping]] = ..., tasks: _Optional[_Iterable[_Union[_run_pb2.Task, _Mapping]]] = ..., events: _Optional[_Iterable[_Union[_event_pb2.EventRecord, _Mapping]]] = ..., caught_up: bool = ...) -> None: ...

class ListEventsRequest(_message.Message):
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

class ListEventsResponse(_message.Message):
    __slots__ = ("events", "next_page_token")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[_event_pb2.EventRecord]
    next_page_token: str
    def __init__(self, events: _Optional[_Iterable[_Union[_event_pb2.EventRecord, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
