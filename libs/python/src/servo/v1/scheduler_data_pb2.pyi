import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import deployment_pb2 as _deployment_pb2
from servo.v1 import materialization_pb2 as _materialization_pb2
from servo.v1 import state_pb2 as _state_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListPartitionsRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "namespace", "name", "page_size", "page_token", "filter", "wait_for_event_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    WAIT_FOR_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    namespace: str
    name: str
    page_size: int
    page_token: str
    filter: str
    wait_for_event_id: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ..., wait_for_event_id: _Optional[str] = ...) -> None: ...

class ListPartitionsResponse(_message.Message):
    __slots__ = ("partitions", "next_page_token")
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[_materialization_pb2.Partition]
    next_page_token: str
    def __init__(self, partitions: _Optional[_Iterable[_Union[_materialization_pb2.Partition, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetPartitionSummaryRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "namespace", "name", "max_stretches", "wait_for_event_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    MAX_STRETCHES_FIELD_NUMBER: _ClassVar[int]
    WAIT_FOR_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    namespace: str
    name: str
    max_stretches: int
    wait_for_event_id: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., max_stretches: _Optional[int] = ..., wait_for_event_id: _Optional[str] = ...) -> None: ...

class GetPartitionSummaryResponse(_message.Message):
    __slots__ = ("total", "counts", "stretches")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    STRETCHES_FIELD_NUMBER: _ClassVar[int]
    total: int
    counts: _containers.RepeatedCompositeFieldContainer[PartitionStateCount]
    stretches: _containers.RepeatedCompositeFieldContainer[PartitionStretch]
    def __init__(self, total: _Optional[int] = ..., counts: _Optional[_Iterable[_Union[PartitionStateCount, _Mapping]]] = ..., stretches: _Optional[_Iterable[_Union[PartitionStretch, _Mapping]]] = ...) -> None: ...

class PartitionStateCount(_message.Message):
    __slots__ = ("state", "count")
    STATE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    state: _materialization_pb2.PartitionState
    count: int
    def __init__(self, state: _Optional[_Union[_materialization_pb2.PartitionState, str]] = ..., count: _Optional[int] = ...) -> None: ...

class PartitionStretch(_message.Message):
    __slots__ = ("first_key", "last_key", "counts")
    FIRST_KEY_FIELD_NUMBER: _ClassVar[int]
    LAST_KEY_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    first_key: str
    last_key: str
    counts: _containers.RepeatedCompositeFieldContainer[PartitionStateCount]
    def __init__(self, first_key: _Optional[str] = ..., last_key: _Optional[str] = ..., counts: _Optional[_Iterable[_Union[PartitionStateCount, _Mapping]]] = ...) -> None: ...

class ListStalePartitionsRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "selection", "page_size", "page_token", "reason")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    SELECTION_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    selection: _containers.RepeatedScalarFieldContainer[str]
    page_size: int
    page_token: str
    reason: _materialization_pb2.StaleReason
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., selection: _Optional[_Iterable[str]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., reason: _Optional[_Union[_materialization_pb2.StaleReason, str]] = ...) -> None: ...

class ListStalePartitionsResponse(_message.Message):
    __slots__ = ("partitions", "next_page_token", "total")
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[_materialization_pb2.Partition]
    next_page_token: str
    total: int
    def __init__(self, partitions: _Optional[_Iterable[_Union[_materialization_pb2.Partition, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total: _Optional[int] = ...) -> None: ...

class ListMaterializationsRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "page_size", "page_token", "filter", "wait_for_event_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    WAIT_FOR_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    page_size: int
    page_token: str
    filter: str
    wait_for_event_id: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ..., wait_for_event_id: _Optional[str] = ...) -> None: ...

class ListMaterializationsResponse(_message.Message):
    __slots__ = ("materializations", "next_page_token")
    MATERIALIZATIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    materializations: _containers.RepeatedCompositeFieldContainer[_materialization_pb2.Materialization]
    next_page_token: str
    def __init__(self, materializations: _Optional[_Iterable[_Union[_materialization_pb2.Materialization, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ResolveQuarantineRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "materialization_id", "decision", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    MATERIALIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    materialization_id: str
    decision: _state_pb2.QuarantineDecision
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., materialization_id: _Optional[str] = ..., decision: _Optional[_Union[_state_pb2.QuarantineDecision, str]] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class ResolveQuarantineResponse(_message.Message):
    __slots__ = ("materialization", "accepted_event_id")
    MATERIALIZATION_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    materialization: _materialization_pb2.Materialization
    accepted_event_id: str
    def __init__(self, materialization: _Optional[_Union[_materialization_pb2.Materialization, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class ListCheckResultsRequest(_message.Message):
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

class ListCheckResultsResponse(_message.Message):
    __slots__ = ("results", "next_page_token")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[_materialization_pb2.CheckRecord]
    next_page_token: str
    def __init__(self, results: _Optional[_Iterable[_Union[_materialization_pb2.CheckRecord, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListRunKeyConflictsRequest(_message.Message):
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

class ListRunKeyConflictsResponse(_message.Message):
    __slots__ = ("conflicts", "next_page_token")
    CONFLICTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    conflicts: _containers.RepeatedCompositeFieldContainer[RunKeyConflict]
    next_page_token: str
    def __init__(self, conflicts: _Optional[_Iterable[_Union[RunKeyConflict, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RunKeyConflict(_message.Message):
    __slots__ = ("run_key", "run_id", "request_fingerprint", "conflicting_fingerprint", "conflicting_event_id", "fields", "detect_time")
    RUN_KEY_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    CONFLICTING_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    CONFLICTING_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    DETECT_TIME_FIELD_NUMBER: _ClassVar[int]
    run_key: str
    run_id: str
    request_fingerprint: str
    conflicting_fingerprint: str
    conflicting_event_id: str
    fields: _containers.RepeatedCompositeFieldContainer[_deployment_pb2.FieldChange]
    detect_time: _timestamp_pb2.Timestamp
    def __init__(self, run_key: _Optional[str] = ..., run_id: _Optional[str] = ..., request_fingerprint: _Optional[str] = ..., conflicting_fingerprint: _Optional[str] = ..., conflicting_event_id: _Optional[str] = ..., fields: _Optional[_Iterable[_Union[_deployment_pb2.FieldChange, _Mapping]]] = ..., detect_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
