from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AutomationCondition(_message.Message):
    __slots__ = ("all_of", "any_of", "negated", "missing", "failed", "upstream_updated", "upstream_ready", "code_changed", "too_old", "cron")
    ALL_OF_FIELD_NUMBER: _ClassVar[int]
    ANY_OF_FIELD_NUMBER: _ClassVar[int]
    NEGATED_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    UPSTREAM_UPDATED_FIELD_NUMBER: _ClassVar[int]
    UPSTREAM_READY_FIELD_NUMBER: _ClassVar[int]
    CODE_CHANGED_FIELD_NUMBER: _ClassVar[int]
    TOO_OLD_FIELD_NUMBER: _ClassVar[int]
    CRON_FIELD_NUMBER: _ClassVar[int]
    all_of: ConditionList
    any_of: ConditionList
    negated: AutomationCondition
    missing: bool
    failed: bool
    upstream_updated: bool
    upstream_ready: bool
    code_changed: bool
    too_old: bool
    cron: CronCondition
    def __init__(self, all_of: _Optional[_Union[ConditionList, _Mapping]] = ..., any_of: _Optional[_Union[ConditionList, _Mapping]] = ..., negated: _Optional[_Union[AutomationCondition, _Mapping]] = ..., missing: bool = ..., failed: bool = ..., upstream_updated: bool = ..., upstream_ready: bool = ..., code_changed: bool = ..., too_old: bool = ..., cron: _Optional[_Union[CronCondition, _Mapping]] = ...) -> None: ...

class ConditionList(_message.Message):
    __slots__ = ("conditions",)
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    conditions: _containers.RepeatedCompositeFieldContainer[AutomationCondition]
    def __init__(self, conditions: _Optional[_Iterable[_Union[AutomationCondition, _Mapping]]] = ...) -> None: ...

class CronCondition(_message.Message):
    __slots__ = ("cron", "time_zone")
    CRON_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    cron: str
    time_zone: str
    def __init__(self, cron: _Optional[str] = ..., time_zone: _Optional[str] = ...) -> None: ...
