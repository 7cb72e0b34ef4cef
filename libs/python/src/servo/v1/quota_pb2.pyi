import datetime

from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import options_pb2 as _options_pb2
from servo.v1 import quota_model_pb2 as _quota_model_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReportGrain(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REPORT_GRAIN_UNSPECIFIED: _ClassVar[ReportGrain]
    REPORT_GRAIN_TOTAL: _ClassVar[ReportGrain]
    REPORT_GRAIN_HOUR: _ClassVar[ReportGrain]
    REPORT_GRAIN_DAY: _ClassVar[ReportGrain]
    REPORT_GRAIN_MONTH: _ClassVar[ReportGrain]
REPORT_GRAIN_UNSPECIFIED: ReportGrain
REPORT_GRAIN_TOTAL: ReportGrain
REPORT_GRAIN_HOUR: ReportGrain
REPORT_GRAIN_DAY: ReportGrain
REPORT_GRAIN_MONTH: ReportGrain

class GetQuotaRequest(_message.Message):
    __slots__ = ("tenant",)
    TENANT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    def __init__(self, tenant: _Optional[str] = ...) -> None: ...

class GetQuotaResponse(_message.Message):
    __slots__ = ("limits", "effective", "version", "used")
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    EFFECTIVE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    limits: _quota_model_pb2.QuotaLimits
    effective: _quota_model_pb2.QuotaLimits
    version: int
    used: QuotaUse
    def __init__(self, limits: _Optional[_Union[_quota_model_pb2.QuotaLimits, _Mapping]] = ..., effective: _Optional[_Union[_quota_model_pb2.QuotaLimits, _Mapping]] = ..., version: _Optional[int] = ..., used: _Optional[_Union[QuotaUse, _Mapping]] = ...) -> None: ...

class QuotaUse(_message.Message):
    __slots__ = ("concurrent_tasks", "concurrent_runs", "queued_runs", "queued_tasks", "daily_runs", "backfill_runs")
    CONCURRENT_TASKS_FIELD_NUMBER: _ClassVar[int]
    CONCURRENT_RUNS_FIELD_NUMBER: _ClassVar[int]
    QUEUED_RUNS_FIELD_NUMBER: _ClassVar[int]
    QUEUED_TASKS_FIELD_NUMBER: _ClassVar[int]
    DAILY_RUNS_FIELD_NUMBER: _ClassVar[int]
    BACKFILL_RUNS_FIELD_NUMBER: _ClassVar[int]
    concurrent_tasks: int
    concurrent_runs: int
    queued_runs: int
    queued_tasks: int
    daily_runs: int
    backfill_runs: int
    def __init__(self, concurrent_tasks: _Optional[int] = ..., concurrent_runs: _Optional[int] = ..., queued_runs: _Optional[int] = ..., queued_tasks: _Optional[int] = ..., daily_runs: _Optional[int] = ..., backfill_runs: _Optional[int] = ...) -> None: ...

class UpdateQuotaRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "limits", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    limits: _quota_model_pb2.QuotaLimits
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., limits: _Optional[_Union[_quota_model_pb2.QuotaLimits, _Mapping]] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class UpdateQuotaResponse(_message.Message):
    __slots__ = ("effective", "version", "accepted_event_id")
    EFFECTIVE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    effective: _quota_model_pb2.QuotaLimits
    version: int
    accepted_event_id: str
    def __init__(self, effective: _Optional[_Union[_quota_model_pb2.QuotaLimits, _Mapping]] = ..., version: _Optional[int] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class ListUsageRequest(_message.Message):
    __slots__ = ("tenant", "page_size", "page_token", "filter", "start_time", "end_time", "grain", "group_by")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    GRAIN_FIELD_NUMBER: _ClassVar[int]
    GROUP_BY_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    page_size: int
    page_token: str
    filter: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    grain: ReportGrain
    group_by: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tenant: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., grain: _Optional[_Union[ReportGrain, str]] = ..., group_by: _Optional[_Iterable[str]] = ...) -> None: ...

class ListUsageResponse(_message.Message):
    __slots__ = ("lines", "next_page_token")
    LINES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    lines: _containers.RepeatedCompositeFieldContainer[_quota_model_pb2.UsageLine]
    next_page_token: str
    def __init__(self, lines: _Optional[_Iterable[_Union[_quota_model_pb2.UsageLine, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class CreatePoolRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "pool", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    pool: _quota_model_pb2.Pool
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., pool: _Optional[_Union[_quota_model_pb2.Pool, _Mapping]] = ..., comment: _Optional[str] = ...) -> None: ...

class CreatePoolResponse(_message.Message):
    __slots__ = ("pool", "accepted_event_id")
    POOL_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    pool: _quota_model_pb2.Pool
    accepted_event_id: str
    def __init__(self, pool: _Optional[_Union[_quota_model_pb2.Pool, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class GetPoolRequest(_message.Message):
    __slots__ = ("tenant", "pool")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    pool: str
    def __init__(self, tenant: _Optional[str] = ..., pool: _Optional[str] = ...) -> None: ...

class GetPoolResponse(_message.Message):
    __slots__ = ("pool", "holders")
    POOL_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    pool: _quota_model_pb2.Pool
    holders: _containers.RepeatedCompositeFieldContainer[_quota_model_pb2.SlotHolder]
    def __init__(self, pool: _Optional[_Union[_quota_model_pb2.Pool, _Mapping]] = ..., holders: _Optional[_Iterable[_Union[_quota_model_pb2.SlotHolder, _Mapping]]] = ...) -> None: ...

class ListPoolsRequest(_message.Message):
    __slots__ = ("tenant", "page_size", "page_token")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    page_size: int
    page_token: str
    def __init__(self, tenant: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListPoolsResponse(_message.Message):
    __slots__ = ("pools", "next_page_token")
    POOLS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    pools: _containers.RepeatedCompositeFieldContainer[_quota_model_pb2.Pool]
    next_page_token: str
    def __init__(self, pools: _Optional[_Iterable[_Union[_quota_model_pb2.Pool, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdatePoolRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "pool", "slots", "description", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    pool: str
    slots: int
    description: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., pool: _Optional[str] = ..., slots: _Optional[int] = ..., description: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class UpdatePoolResponse(_message.Message):
    __slots__ = ("pool", "accepted_event_id")
    POOL_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    pool: _quota_model_pb2.Pool
    accepted_event_id: str
    def __init__(self, pool: _Optional[_Union[_quota_model_pb2.Pool, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class DeletePoolRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "pool", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    pool: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., pool: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class DeletePoolResponse(_message.Message):
    __slots__ = ("accepted_event_id",)
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    accepted_event_id: str
    def __init__(self, accepted_event_id: _Optional[str] = ...) -> None: ...

class GetCostsRequest(_message.Message):
    __slots__ = ("tenant", "page_size", "page_token", "filter", "start_time", "end_time", "grain", "group_by")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    GRAIN_FIELD_NUMBER: _ClassVar[int]
    GROUP_BY_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    page_size: int
    page_token: str
    filter: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    grain: ReportGrain
    group_by: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tenant: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., grain: _Optional[_Union[ReportGrain, str]] = ..., group_by: _Optional[_Iterable[str]] = ...) -> None: ...

class GetCostsResponse(_message.Message):
    __slots__ = ("lines", "next_page_token", "currency")
    LINES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CURRENCY_FIELD_NUMBER: _ClassVar[int]
    lines: _containers.RepeatedCompositeFieldContainer[_quota_model_pb2.CostLine]
    next_page_token: str
    currency: str
    def __init__(self, lines: _Optional[_Iterable[_Union[_quota_model_pb2.CostLine, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., currency: _Optional[str] = ...) -> None: ...

class GetPricesRequest(_message.Message):
    __slots__ = ("tenant",)
    TENANT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    def __init__(self, tenant: _Optional[str] = ...) -> None: ...

class GetPricesResponse(_message.Message):
    __slots__ = ("prices", "is_default")
    PRICES_FIELD_NUMBER: _ClassVar[int]
    IS_DEFAULT_FIELD_NUMBER: _ClassVar[int]
    prices: _quota_model_pb2.PriceList
    is_default: bool
    def __init__(self, prices: _Optional[_Union[_quota_model_pb2.PriceList, _Mapping]] = ..., is_default: bool = ...) -> None: ...

class UpdatePricesRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "prices", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PRICES_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    prices: _quota_model_pb2.PriceList
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., prices: _Optional[_Union[_quota_model_pb2.PriceList, _Mapping]] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class UpdatePricesResponse(_message.Message):
    __slots__ = ("prices", "accepted_event_id")
    PRICES_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    prices: _quota_model_pb2.PriceList
    accepted_event_id: str
    def __init__(self, prices: _Optional[_Union[_quota_model_pb2.PriceList, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class CreateBudgetRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "budget", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    budget: _quota_model_pb2.Budget
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., budget: _Optional[_Union[_quota_model_pb2.Budget, _Mapping]] = ..., comment: _Optional[str] = ...) -> None: ...

class CreateBudgetResponse(_message.Message):
    __slots__ = ("budget", "accepted_event_id")
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    budget: _quota_model_pb2.Budget
    accepted_event_id: str
    def __init__(self, budget: _Optional[_Union[_quota_model_pb2.Budget, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class GetBudgetRequest(_message.Message):
    __slots__ = ("tenant", "budget_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    BUDGET_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    budget_id: str
    def __init__(self, tenant: _Optional[str] = ..., budget_id: _Optional[str] = ...) -> None: ...

class GetBudgetResponse(_message.Message):
    __slots__ = ("budget",)
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    budget: _quota_model_pb2.Budget
    def __init__(self, budget: _Optional[_Union[_quota_model_pb2.Budget, _Mapping]] = ...) -> None: ...

class ListBudgetsRequest(_message.Message):
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

class ListBudgetsResponse(_message.Message):
    __slots__ = ("budgets", "next_page_token")
    BUDGETS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    budgets: _containers.RepeatedCompositeFieldContainer[_quota_model_pb2.Budget]
    next_page_token: str
    def __init__(self, budgets: _Optional[_Iterable[_Union[_quota_model_pb2.Budget, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdateBudgetRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "budget_id", "budget", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    BUDGET_ID_FIELD_NUMBER: _ClassVar[int]
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    budget_id: str
    budget: _quota_model_pb2.Budget
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., budget_id: _Optional[str] = ..., budget: _Optional[_Union[_quota_model_pb2.Budget, _Mapping]] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class UpdateBudgetResponse(_message.Message):
    __slots__ = ("budget", "accepted_event_id")
    BUDGET_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    budget: _quota_model_pb2.Budget
    accepted_event_id: str
    def __init__(self, budget: _Optional[_Union[_quota_model_pb2.Budget, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class DeleteBudgetRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "budget_id", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    BUDGET_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    budget_id: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., budget_id: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class DeleteBudgetResponse(_message.Message):
    __slots__ = ("accepted_event_id",)
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    accepted_event_id: str
    def __init__(self, accepted_event_id: _Optional[str] = ...) -> None: ...
