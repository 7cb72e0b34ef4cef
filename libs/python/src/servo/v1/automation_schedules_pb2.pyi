import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import schedule_pb2 as _schedule_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DecisionOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DECISION_OUTCOME_UNSPECIFIED: _ClassVar[DecisionOutcome]
    DECISION_OUTCOME_REQUESTED: _ClassVar[DecisionOutcome]
    DECISION_OUTCOME_NOT_NEEDED: _ClassVar[DecisionOutcome]
    DECISION_OUTCOME_WAITING: _ClassVar[DecisionOutcome]
    DECISION_OUTCOME_HELD: _ClassVar[DecisionOutcome]
DECISION_OUTCOME_UNSPECIFIED: DecisionOutcome
DECISION_OUTCOME_REQUESTED: DecisionOutcome
DECISION_OUTCOME_NOT_NEEDED: DecisionOutcome
DECISION_OUTCOME_WAITING: DecisionOutcome
DECISION_OUTCOME_HELD: DecisionOutcome

class CreateScheduleRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "definition", "paused", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    definition: _schedule_pb2.ScheduleDefinition
    paused: bool
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., definition: _Optional[_Union[_schedule_pb2.ScheduleDefinition, _Mapping]] = ..., paused: bool = ..., comment: _Optional[str] = ...) -> None: ...

class CreateScheduleResponse(_message.Message):
    __slots__ = ("schedule", "accepted_event_id")
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    schedule: _schedule_pb2.Schedule
    accepted_event_id: str
    def __init__(self, schedule: _Optional[_Union[_schedule_pb2.Schedule, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class GetScheduleRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "schedule_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    schedule_id: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., schedule_id: _Optional[str] = ...) -> None: ...

class GetScheduleResponse(_message.Message):
    __slots__ = ("schedule",)
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    schedule: _schedule_pb2.Schedule
    def __init__(self, schedule: _Optional[_Union[_schedule_pb2.Schedule, _Mapping]] = ...) -> None: ...

class ListSchedulesRequest(_message.Message):
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

class ListSchedulesResponse(_message.Message):
    __slots__ = ("schedules", "next_page_token")
    SCHEDULES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    schedules: _containers.RepeatedCompositeFieldContainer[_schedule_pb2.Schedule]
    next_page_token: str
    def __init__(self, schedules: _Optional[_Iterable[_Union[_schedule_pb2.Schedule, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdateScheduleRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "schedule_id", "definition", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    schedule_id: str
    definition: _schedule_pb2.ScheduleDefinition
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., schedule_id: _Optional[str] = ..., definition: _Optional[_Union[_schedule_pb2.ScheduleDefinition, _Mapping]] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class UpdateScheduleResponse(_message.Message):
    __slots__ = ("schedule", "accepted_event_id")
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    schedule: _schedule_pb2.Schedule
    accepted_event_id: str
    def __init__(self, schedule: _Optional[_Union[_schedule_pb2.Schedule, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class DeleteScheduleRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "schedule_id", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    schedule_id: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., schedule_id: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class DeleteScheduleResponse(_message.Message):
    __slots__ = ("accepted_event_id",)
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    accepted_event_id: str
    def __init__(self, accepted_event_id: _Optional[str] = ...) -> None: ...

class PauseScheduleRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "schedule_id", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    schedule_id: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., schedule_id: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class PauseScheduleResponse(_message.Message):
    __slots__ = ("schedule", "accepted_event_id")
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    schedule: _schedule_pb2.Schedule
    accepted_event_id: str
    def __init__(self, schedule: _Optional[_Union[_schedule_pb2.Schedule, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class ResumeScheduleRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "schedule_id", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    schedule_id: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., schedule_id: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class ResumeScheduleResponse(_message.Message):
    __slots__ = ("schedule", "accepted_event_id")
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    schedule: _schedule_pb2.Schedule
    accepted_event_id: str
    def __init__(self, schedule: _Optional[_Union[_schedule_pb2.Schedule, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class TriggerScheduleRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "schedule_id", "scheduled_time", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_TIME_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    schedule_id: str
    scheduled_time: _timestamp_pb2.Timestamp
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., schedule_id: _Optional[str] = ..., scheduled_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., comment: _Optional[str] = ...) -> None: ...

class TriggerScheduleResponse(_message.Message):
    __slots__ = ("tick", "accepted_event_id")
    TICK_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    tick: _schedule_pb2.Tick
    accepted_event_id: str
    def __init__(self, tick: _Optional[_Union[_schedule_pb2.Tick, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class ListTicksRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "schedule_id", "page_size", "page_token", "filter")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    schedule_id: str
    page_size: int
    page_token: str
    filter: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., schedule_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ...) -> None: ...

class ListTicksResponse(_message.Message):
    __slots__ = ("ticks", "next_page_token")
    TICKS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    ticks: _containers.RepeatedCompositeFieldContainer[_schedule_pb2.Tick]
    next_page_token: str
    def __init__(self, ticks: _Optional[_Iterable[_Union[_schedule_pb2.Tick, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class PreviewTicksRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "definition", "after_time", "count")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    AFTER_TIME_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    definition: _schedule_pb2.ScheduleDefinition
    after_time: _timestamp_pb2.Timestamp
    count: int
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., definition: _Optional[_Union[_schedule_pb2.ScheduleDefinition, _Mapping]] = ..., after_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., count: _Optional[int] = ...) -> None: ...

class PreviewTicksResponse(_message.Message):
    __slots__ = ("ticks",)
    TICKS_FIELD_NUMBER: _ClassVar[int]
    ticks: _containers.RepeatedCompositeFieldContainer[TickPreview]
    def __init__(self, ticks: _Optional[_Iterable[_Union[TickPreview, _Mapping]]] = ...) -> None: ...

class TickPreview(_message.Message):
    __slots__ = ("scheduled_time", "local_time", "clock_change", "partition_keys")
    SCHEDULED_TIME_FIELD_NUMBER: _ClassVar[int]
    LOCAL_TIME_FIELD_NUMBER: _ClassVar[int]
    CLOCK_CHANGE_FIELD_NUMBER: _ClassVar[int]
    PARTITION_KEYS_FIELD_NUMBER: _ClassVar[int]
    scheduled_time: _timestamp_pb2.Timestamp
    local_time: str
    clock_change: str
    partition_keys: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, scheduled_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., local_time: _Optional[str] = ..., clock_change: _Optional[str] = ..., partition_keys: _Optional[_Iterable[str]] = ...) -> None: ...

class ListAutomationDecisionsRequest(_message.Message):
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

class ListAutomationDecisionsResponse(_message.Message):
    __slots__ = ("decisions", "next_page_token")
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    decisions: _containers.RepeatedCompositeFieldContainer[AutomationDecision]
    next_page_token: str
    def __init__(self, decisions: _Optional[_Iterable[_Union[AutomationDecision, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class AutomationDecision(_message.Message):
    __slots__ = ("decision_id", "asset_key", "partition_key", "outcome", "result", "run_key", "run_id", "decide_time")
    DECISION_ID_FIELD_NUMBER: _ClassVar[int]
    ASSET_KEY_FIELD_NUMBER: _ClassVar[int]
    PARTITION_KEY_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    RUN_KEY_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    DECIDE_TIME_FIELD_NUMBER: _ClassVar[int]
    decision_id: str
    asset_key: str
    partition_key: str
    outcome: DecisionOutcome
    result: ConditionResult
    run_key: str
    run_id: str
    decide_time: _timestamp_pb2.Timestamp
    def __init__(self, decision_id: _Optional[str] = ..., asset_key: _Optional[str] = ..., partition_key: _Optional[str] = ..., outcome: _Optional[_Union[DecisionOutcome, str]] = ..., result: _Optional[_Union[ConditionResult, _Mapping]] = ..., run_key: _Optional[str] = ..., run_id: _Optional[str] = ..., decide_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ConditionResult(_message.Message):
    __slots__ = ("condition", "holds", "detail", "parts")
    CONDITION_FIELD_NUMBER: _ClassVar[int]
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    condition: str
    holds: bool
    detail: str
    parts: _containers.RepeatedCompositeFieldContainer[ConditionResult]
    def __init__(self, condition: _Optional[str] = ..., holds: bool = ..., detail: _Optional[str] = ..., parts: _Optional[_Iterable[_Union[ConditionResult, _Mapping]]] = ...) -> None: ...
