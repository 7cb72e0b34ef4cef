import datetime

from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from servo.v1 import backfill_model_pb2 as _backfill_model_pb2
from servo.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PreviewBackfillRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "spec")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    spec: _backfill_model_pb2.BackfillSpec
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., spec: _Optional[_Union[_backfill_model_pb2.BackfillSpec, _Mapping]] = ...) -> None: ...

class PreviewBackfillResponse(_message.Message):
    __slots__ = ("total_partitions", "up_to_date_partitions", "total_chunks", "total_tasks", "chunks", "estimated_duration", "estimated_cost_micros")
    TOTAL_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    UP_TO_DATE_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_CHUNKS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_TASKS_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_DURATION_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_COST_MICROS_FIELD_NUMBER: _ClassVar[int]
    total_partitions: int
    up_to_date_partitions: int
    total_chunks: int
    total_tasks: int
    chunks: _containers.RepeatedCompositeFieldContainer[_backfill_model_pb2.Chunk]
    estimated_duration: _duration_pb2.Duration
    estimated_cost_micros: int
    def __init__(self, total_partitions: _Optional[int] = ..., up_to_date_partitions: _Optional[int] = ..., total_chunks: _Optional[int] = ..., total_tasks: _Optional[int] = ..., chunks: _Optional[_Iterable[_Union[_backfill_model_pb2.Chunk, _Mapping]]] = ..., estimated_duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., estimated_cost_micros: _Optional[int] = ...) -> None: ...

class CreateBackfillRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "spec", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    spec: _backfill_model_pb2.BackfillSpec
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., spec: _Optional[_Union[_backfill_model_pb2.BackfillSpec, _Mapping]] = ..., comment: _Optional[str] = ...) -> None: ...

class CreateBackfillResponse(_message.Message):
    __slots__ = ("backfill", "accepted_event_id")
    BACKFILL_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    backfill: _backfill_model_pb2.Backfill
    accepted_event_id: str
    def __init__(self, backfill: _Optional[_Union[_backfill_model_pb2.Backfill, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class GetBackfillRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "backfill_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    BACKFILL_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    backfill_id: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., backfill_id: _Optional[str] = ...) -> None: ...

class GetBackfillResponse(_message.Message):
    __slots__ = ("backfill",)
    BACKFILL_FIELD_NUMBER: _ClassVar[int]
    backfill: _backfill_model_pb2.Backfill
    def __init__(self, backfill: _Optional[_Union[_backfill_model_pb2.Backfill, _Mapping]] = ...) -> None: ...

class ListBackfillsRequest(_message.Message):
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

class ListBackfillsResponse(_message.Message):
    __slots__ = ("backfills", "next_page_token")
    BACKFILLS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    backfills: _containers.RepeatedCompositeFieldContainer[_backfill_model_pb2.Backfill]
    next_page_token: str
    def __init__(self, backfills: _Optional[_Iterable[_Union[_backfill_model_pb2.Backfill, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListChunksRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "backfill_id", "page_size", "page_token", "filter")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    BACKFILL_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    backfill_id: str
    page_size: int
    page_token: str
    filter: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., backfill_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ...) -> None: ...

class ListChunksResponse(_message.Message):
    __slots__ = ("chunks", "next_page_token")
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    chunks: _containers.RepeatedCompositeFieldContainer[_backfill_model_pb2.Chunk]
    next_page_token: str
    def __init__(self, chunks: _Optional[_Iterable[_Union[_backfill_model_pb2.Chunk, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class PauseBackfillRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "backfill_id", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    BACKFILL_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    backfill_id: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., backfill_id: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class PauseBackfillResponse(_message.Message):
    __slots__ = ("backfill", "accepted_event_id")
    BACKFILL_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    backfill: _backfill_model_pb2.Backfill
    accepted_event_id: str
    def __init__(self, backfill: _Optional[_Union[_backfill_model_pb2.Backfill, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class ResumeBackfillRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "backfill_id", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    BACKFILL_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    backfill_id: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., backfill_id: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class ResumeBackfillResponse(_message.Message):
    __slots__ = ("backfill", "accepted_event_id")
    BACKFILL_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    backfill: _backfill_model_pb2.Backfill
    accepted_event_id: str
    def __init__(self, backfill: _Optional[_Union[_backfill_model_pb2.Backfill, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class CancelBackfillRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "backfill_id", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    BACKFILL_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    backfill_id: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., backfill_id: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class CancelBackfillResponse(_message.Message):
    __slots__ = ("backfill", "accepted_event_id")
    BACKFILL_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    backfill: _backfill_model_pb2.Backfill
    accepted_event_id: str
    def __init__(self, backfill: _Optional[_Union[_backfill_model_pb2.Backfill, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class RetryFailedRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "backfill_id", "use_current_deployment", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    BACKFILL_ID_FIELD_NUMBER: _ClassVar[int]
    USE_CURRENT_DEPLOYMENT_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    backfill_id: str
    use_current_deployment: bool
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., backfill_id: _Optional[str] = ..., use_current_deployment: bool = ..., comment: _Optional[str] = ...) -> None: ...

class RetryFailedResponse(_message.Message):
    __slots__ = ("backfill", "accepted_event_id")
    BACKFILL_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    backfill: _backfill_model_pb2.Backfill
    accepted_event_id: str
    def __init__(self, backfill: _Optional[_Union[_backfill_model_pb2.Backfill, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...
