import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BudgetPeriod(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BUDGET_PERIOD_UNSPECIFIED: _ClassVar[BudgetPeriod]
    BUDGET_PERIOD_DAY: _ClassVar[BudgetPeriod]
    BUDGET_PERIOD_MONTH: _ClassVar[BudgetPeriod]
    BUDGET_PERIOD_TOTAL: _ClassVar[BudgetPeriod]

class BudgetAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BUDGET_ACTION_UNSPECIFIED: _ClassVar[BudgetAction]
    BUDGET_ACTION_WARN: _ClassVar[BudgetAction]
    BUDGET_ACTION_HOLD_BACKFILLS: _ClassVar[BudgetAction]
    BUDGET_ACTION_HOLD_ALL: _ClassVar[BudgetAction]
BUDGET_PERIOD_UNSPECIFIED: BudgetPeriod
BUDGET_PERIOD_DAY: BudgetPeriod
BUDGET_PERIOD_MONTH: BudgetPeriod
BUDGET_PERIOD_TOTAL: BudgetPeriod
BUDGET_ACTION_UNSPECIFIED: BudgetAction
BUDGET_ACTION_WARN: BudgetAction
BUDGET_ACTION_HOLD_BACKFILLS: BudgetAction
BUDGET_ACTION_HOLD_ALL: BudgetAction

class QuotaLimits(_message.Message):
    __slots__ = ("max_concurrent_tasks", "max_concurrent_runs", "max_queued_runs", "max_queued_tasks", "max_daily_runs", "max_run_duration", "max_tasks_per_run", "max_backfill_concurrency", "weight_millis", "backfill_floor_ppm", "backfill_cap_ppm", "max_calls_per_minute")
    MAX_CONCURRENT_TASKS_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENT_RUNS_FIELD_NUMBER: _ClassVar[int]
    MAX_QUEUED_RUNS_FIELD_NUMBER: _ClassVar[int]
    MAX_QUEUED_TASKS_FIELD_NUMBER: _ClassVar[int]
    MAX_DAILY_RUNS_FIELD_NUMBER: _ClassVar[int]
    MAX_RUN_DURATION_FIELD_NUMBER: _ClassVar[int]
    MAX_TASKS_PER_RUN_FIELD_NUMBER: _ClassVar[int]
    MAX_BACKFILL_CONCURRENCY_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_MILLIS_FIELD_NUMBER: _ClassVar[int]
    BACKFILL_FLOOR_PPM_FIELD_NUMBER: _ClassVar[int]
    BACKFILL_CAP_PPM_FIELD_NUMBER: _ClassVar[int]
    MAX_CALLS_PER_MINUTE_FIELD_NUMBER: _ClassVar[int]
    max_concurrent_tasks: int
    max_concurrent_runs: int
    max_queued_runs: int
    max_queued_tasks: int
    max_daily_runs: int
    max_run_duration: _duration_pb2.Duration
    max_tasks_per_run: int
    max_backfill_concurrency: int
    weight_millis: int
    backfill_floor_ppm: int
    backfill_cap_ppm: int
    max_calls_per_minute: int
    def __init__(self, max_concurrent_tasks: _Optional[int] = ..., max_concurrent_runs: _Optional[int] = ..., max_queued_runs: _Optional[int] = ..., max_queued_tasks: _Optional[int] = ..., max_daily_runs: _Optional[int] = ..., max_run_duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_tasks_per_run: _Optional[int] = ..., max_backfill_concurrency: _Optional[int] = ..., weight_millis: _Optional[int] = ..., backfill_floor_ppm: _Optional[int] = ..., backfill_cap_ppm: _Optional[int] = ..., max_calls_per_minute: _Optional[int] = ...) -> None: ...

class Pool(_message.Message):
    __slots__ = ("pool", "slots", "description", "version", "used_slots", "use_unknown")
    POOL_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    USED_SLOTS_FIELD_NUMBER: _ClassVar[int]
    USE_UNKNOWN_FIELD_NUMBER: _ClassVar[int]
    pool: str
    slots: int
    description: str
    version: int
    used_slots: int
    use_unknown: bool
    def __init__(self, pool: _Optional[str] = ..., slots: _Optional[int] = ..., description: _Optional[str] = ..., version: _Optional[int] = ..., used_slots: _Optional[int] = ..., use_unknown: bool = ...) -> None: ...

class Budget(_message.Message):
    __slots__ = ("budget_id", "name", "workspace", "selection", "limit_micros", "currency", "period", "action", "version", "spent_micros", "period_end_time")
    BUDGET_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    SELECTION_FIELD_NUMBER: _ClassVar[int]
    LIMIT_MICROS_FIELD_NUMBER: _ClassVar[int]
    CURRENCY_FIELD_NUMBER: _ClassVar[int]
    PERIOD_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SPENT_MICROS_FIELD_NUMBER: _ClassVar[int]
    PERIOD_END_TIME_FIELD_NUMBER: _ClassVar[int]
    budget_id: str
    name: str
    workspace: str
    selection: _containers.RepeatedScalarFieldContainer[str]
    limit_micros: int
    currency: str
    period: BudgetPeriod
    action: BudgetAction
    version: int
    spent_micros: int
    period_end_time: _timestamp_pb2.Timestamp
    def __init__(self, budget_id: _Optional[str] = ..., name: _Optional[str] = ..., workspace: _Optional[str] = ..., selection: _Optional[_Iterable[str]] = ..., limit_micros: _Optional[int] = ..., currency: _Optional[str] = ..., period: _Optional[_Union[BudgetPeriod, str]] = ..., action: _Optional[_Union[BudgetAction, str]] = ..., version: _Optional[int] = ..., spent_micros: _Optional[int] = ..., period_end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class PriceList(_message.Message):
    __slots__ = ("currency", "cpu_hour_micros", "memory_gb_hour_micros", "gpu_hour_micros", "read_gb_micros", "written_gb_micros", "egress_gb_micros", "million_units_micros", "version")
    class MillionUnitsMicrosEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    CURRENCY_FIELD_NUMBER: _ClassVar[int]
    CPU_HOUR_MICROS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_GB_HOUR_MICROS_FIELD_NUMBER: _ClassVar[int]
    GPU_HOUR_MICROS_FIELD_NUMBER: _ClassVar[int]
    READ_GB_MICROS_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_GB_MICROS_FIELD_NUMBER: _ClassVar[int]
    EGRESS_GB_MICROS_FIELD_NUMBER: _ClassVar[int]
    MILLION_UNITS_MICROS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    currency: str
    cpu_hour_micros: int
    memory_gb_hour_micros: int
    gpu_hour_micros: int
    read_gb_micros: int
    written_gb_micros: int
    egress_gb_micros: int
    million_units_micros: _containers.ScalarMap[str, int]
    version: int
    def __init__(self, currency: _Optional[str] = ..., cpu_hour_micros: _Optional[int] = ..., memory_gb_hour_micros: _Optional[int] = ..., gpu_hour_micros: _Optional[int] = ..., read_gb_micros: _Optional[int] = ..., written_gb_micros: _Optional[int] = ..., egress_gb_micros: _Optional[int] = ..., million_units_micros: _Optional[_Mapping[str, int]] = ..., version: _Optional[int] = ...) -> None: ...

class UsageLine(_message.Message):
    __slots__ = ("start_time", "end_time", "group", "attempts", "slot_ms", "usage")
    class GroupEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    SLOT_MS_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    group: _containers.ScalarMap[str, str]
    attempts: int
    slot_ms: int
    usage: _common_pb2.Usage
    def __init__(self, start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., group: _Optional[_Mapping[str, str]] = ..., attempts: _Optional[int] = ..., slot_ms: _Optional[int] = ..., usage: _Optional[_Union[_common_pb2.Usage, _Mapping]] = ...) -> None: ...

class CostLine(_message.Message):
    __slots__ = ("start_time", "end_time", "group", "compute_micros", "storage_micros", "network_micros", "external_micros", "total_micros")
    class GroupEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_MICROS_FIELD_NUMBER: _ClassVar[int]
    STORAGE_MICROS_FIELD_NUMBER: _ClassVar[int]
    NETWORK_MICROS_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_MICROS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_MICROS_FIELD_NUMBER: _ClassVar[int]
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    group: _containers.ScalarMap[str, str]
    compute_micros: int
    storage_micros: int
    network_micros: int
    external_micros: int
    total_micros: int
    def __init__(self, start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., group: _Optional[_Mapping[str, str]] = ..., compute_micros: _Optional[int] = ..., storage_micros: _Optional[int] = ..., network_micros: _Optional[int] = ..., external_micros: _Optional[int] = ..., total_micros: _Optional[int] = ...) -> None: ...

class SlotHolder(_message.Message):
    __slots__ = ("workspace", "run_id", "task_id", "attempt_id", "since_time")
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_ID_FIELD_NUMBER: _ClassVar[int]
    SINCE_TIME_FIELD_NUMBER: _ClassVar[int]
    workspace: str
    run_id: str
    task_id: str
    attempt_id: str
    since_time: _timestamp_pb2.Timestamp
    def __init__(self, workspace: _Optional[str] = ..., run_id: _Optional[str] = ..., task_id: _Optional[str] = ..., attempt_id: _Optional[str] = ..., since_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
