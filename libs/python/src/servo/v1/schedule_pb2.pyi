import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import common_pb2 as _common_pb2
from servo.v1 import run_spec_pb2 as _run_spec_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GapPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GAP_POLICY_UNSPECIFIED: _ClassVar[GapPolicy]
    GAP_POLICY_SHIFT: _ClassVar[GapPolicy]
    GAP_POLICY_SKIP: _ClassVar[GapPolicy]

class OverlapPolicy(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OVERLAP_POLICY_UNSPECIFIED: _ClassVar[OverlapPolicy]
    OVERLAP_POLICY_FIRST: _ClassVar[OverlapPolicy]
    OVERLAP_POLICY_LAST: _ClassVar[OverlapPolicy]
    OVERLAP_POLICY_BOTH: _ClassVar[OverlapPolicy]

class AutomationState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUTOMATION_STATE_UNSPECIFIED: _ClassVar[AutomationState]
    AUTOMATION_STATE_ACTIVE: _ClassVar[AutomationState]
    AUTOMATION_STATE_PAUSED: _ClassVar[AutomationState]
    AUTOMATION_STATE_DELETED: _ClassVar[AutomationState]
    AUTOMATION_STATE_ERROR: _ClassVar[AutomationState]

class TickCause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TICK_CAUSE_UNSPECIFIED: _ClassVar[TickCause]
    TICK_CAUSE_CRON: _ClassVar[TickCause]
    TICK_CAUSE_CATCH_UP: _ClassVar[TickCause]
    TICK_CAUSE_MANUAL: _ClassVar[TickCause]

class TickOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TICK_OUTCOME_UNSPECIFIED: _ClassVar[TickOutcome]
    TICK_OUTCOME_TRIGGERED: _ClassVar[TickOutcome]
    TICK_OUTCOME_SKIPPED: _ClassVar[TickOutcome]
    TICK_OUTCOME_FAILED: _ClassVar[TickOutcome]
GAP_POLICY_UNSPECIFIED: GapPolicy
GAP_POLICY_SHIFT: GapPolicy
GAP_POLICY_SKIP: GapPolicy
OVERLAP_POLICY_UNSPECIFIED: OverlapPolicy
OVERLAP_POLICY_FIRST: OverlapPolicy
OVERLAP_POLICY_LAST: OverlapPolicy
OVERLAP_POLICY_BOTH: OverlapPolicy
AUTOMATION_STATE_UNSPECIFIED: AutomationState
AUTOMATION_STATE_ACTIVE: AutomationState
AUTOMATION_STATE_PAUSED: AutomationState
AUTOMATION_STATE_DELETED: AutomationState
AUTOMATION_STATE_ERROR: AutomationState
TICK_CAUSE_UNSPECIFIED: TickCause
TICK_CAUSE_CRON: TickCause
TICK_CAUSE_CATCH_UP: TickCause
TICK_CAUSE_MANUAL: TickCause
TICK_OUTCOME_UNSPECIFIED: TickOutcome
TICK_OUTCOME_TRIGGERED: TickOutcome
TICK_OUTCOME_SKIPPED: TickOutcome
TICK_OUTCOME_FAILED: TickOutcome

class ScheduleDefinition(_message.Message):
    __slots__ = ("name", "description", "cron", "time_zone", "gap", "overlap", "catch_up_window", "catch_up_max_ticks", "run", "skip_while_running")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    CRON_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    OVERLAP_FIELD_NUMBER: _ClassVar[int]
    CATCH_UP_WINDOW_FIELD_NUMBER: _ClassVar[int]
    CATCH_UP_MAX_TICKS_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    SKIP_WHILE_RUNNING_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    cron: str
    time_zone: str
    gap: GapPolicy
    overlap: OverlapPolicy
    catch_up_window: _duration_pb2.Duration
    catch_up_max_ticks: int
    run: _run_spec_pb2.RunSpec
    skip_while_running: bool
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., cron: _Optional[str] = ..., time_zone: _Optional[str] = ..., gap: _Optional[_Union[GapPolicy, str]] = ..., overlap: _Optional[_Union[OverlapPolicy, str]] = ..., catch_up_window: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., catch_up_max_ticks: _Optional[int] = ..., run: _Optional[_Union[_run_spec_pb2.RunSpec, _Mapping]] = ..., skip_while_running: bool = ...) -> None: ...

class Schedule(_message.Message):
    __slots__ = ("schedule_id", "definition", "version", "state", "deployment_id", "last_tick_id", "last_tick_time", "next_tick_time", "create_time", "update_time", "updated_by")
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_TICK_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_TICK_TIME_FIELD_NUMBER: _ClassVar[int]
    NEXT_TICK_TIME_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATED_BY_FIELD_NUMBER: _ClassVar[int]
    schedule_id: str
    definition: ScheduleDefinition
    version: int
    state: AutomationState
    deployment_id: str
    last_tick_id: str
    last_tick_time: _timestamp_pb2.Timestamp
    next_tick_time: _timestamp_pb2.Timestamp
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    updated_by: _common_pb2.Actor
    def __init__(self, schedule_id: _Optional[str] = ..., definition: _Optional[_Union[ScheduleDefinition, _Mapping]] = ..., version: _Optional[int] = ..., state: _Optional[_Union[AutomationState, str]] = ..., deployment_id: _Optional[str] = ..., last_tick_id: _Optional[str] = ..., last_tick_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., next_tick_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ...) -> None: ...

class Tick(_message.Message):
    __slots__ = ("tick_id", "schedule_id", "scheduled_time", "record_time", "definition_version", "cause", "outcome", "detail", "run_key", "run_id")
    TICK_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_ID_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_TIME_FIELD_NUMBER: _ClassVar[int]
    RECORD_TIME_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_VERSION_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    RUN_KEY_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    tick_id: str
    schedule_id: str
    scheduled_time: _timestamp_pb2.Timestamp
    record_time: _timestamp_pb2.Timestamp
    definition_version: int
    cause: TickCause
    outcome: TickOutcome
    detail: str
    run_key: str
    run_id: str
    def __init__(self, tick_id: _Optional[str] = ..., schedule_id: _Optional[str] = ..., scheduled_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., record_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., definition_version: _Optional[int] = ..., cause: _Optional[_Union[TickCause, str]] = ..., outcome: _Optional[_Union[TickOutcome, str]] = ..., detail: _Optional[str] = ..., run_key: _Optional[str] = ..., run_id: _Optional[str] = ...) -> None: ...
