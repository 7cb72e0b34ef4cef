import datetime

from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RebuildState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REBUILD_STATE_UNSPECIFIED: _ClassVar[RebuildState]
    REBUILD_STATE_FOLDING: _ClassVar[RebuildState]
    REBUILD_STATE_VERIFYING: _ClassVar[RebuildState]
    REBUILD_STATE_SUCCEEDED: _ClassVar[RebuildState]
    REBUILD_STATE_FAILED: _ClassVar[RebuildState]
    REBUILD_STATE_ABORTED: _ClassVar[RebuildState]
REBUILD_STATE_UNSPECIFIED: RebuildState
REBUILD_STATE_FOLDING: RebuildState
REBUILD_STATE_VERIFYING: RebuildState
REBUILD_STATE_SUCCEEDED: RebuildState
REBUILD_STATE_FAILED: RebuildState
REBUILD_STATE_ABORTED: RebuildState

class ListProjectionsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListProjectionsResponse(_message.Message):
    __slots__ = ("projections", "next_page_token")
    PROJECTIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    projections: _containers.RepeatedCompositeFieldContainer[Projection]
    next_page_token: str
    def __init__(self, projections: _Optional[_Iterable[_Union[Projection, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Projection(_message.Message):
    __slots__ = ("projection", "stream", "shards", "rebuild_id", "verify_time")
    PROJECTION_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    REBUILD_ID_FIELD_NUMBER: _ClassVar[int]
    VERIFY_TIME_FIELD_NUMBER: _ClassVar[int]
    projection: str
    stream: str
    shards: _containers.RepeatedCompositeFieldContainer[ShardStatus]
    rebuild_id: str
    verify_time: _timestamp_pb2.Timestamp
    def __init__(self, projection: _Optional[str] = ..., stream: _Optional[str] = ..., shards: _Optional[_Iterable[_Union[ShardStatus, _Mapping]]] = ..., rebuild_id: _Optional[str] = ..., verify_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ShardStatus(_message.Message):
    __slots__ = ("shard", "head", "watermark", "holder", "epoch", "fault")
    SHARD_FIELD_NUMBER: _ClassVar[int]
    HEAD_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    shard: int
    head: int
    watermark: int
    holder: str
    epoch: int
    fault: str
    def __init__(self, shard: _Optional[int] = ..., head: _Optional[int] = ..., watermark: _Optional[int] = ..., holder: _Optional[str] = ..., epoch: _Optional[int] = ..., fault: _Optional[str] = ...) -> None: ...

class RebuildProjectionRequest(_message.Message):
    __slots__ = ("request_id", "projection", "verify", "shards", "comment")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECTION_FIELD_NUMBER: _ClassVar[int]
    VERIFY_FIELD_NUMBER: _ClassVar[int]
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    projection: str
    verify: bool
    shards: _containers.RepeatedScalarFieldContainer[int]
    comment: str
    def __init__(self, request_id: _Optional[str] = ..., projection: _Optional[str] = ..., verify: bool = ..., shards: _Optional[_Iterable[int]] = ..., comment: _Optional[str] = ...) -> None: ...

class RebuildProjectionResponse(_message.Message):
    __slots__ = ("rebuild", "accepted_event_id")
    REBUILD_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    rebuild: Rebuild
    accepted_event_id: str
    def __init__(self, rebuild: _Optional[_Union[Rebuild, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class Rebuild(_message.Message):
    __slots__ = ("rebuild_id", "projection", "state", "folded_events", "total_events", "different_rows", "error", "start_time", "end_time")
    REBUILD_ID_FIELD_NUMBER: _ClassVar[int]
    PROJECTION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    FOLDED_EVENTS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_EVENTS_FIELD_NUMBER: _ClassVar[int]
    DIFFERENT_ROWS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    rebuild_id: str
    projection: str
    state: RebuildState
    folded_events: int
    total_events: int
    different_rows: int
    error: str
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    def __init__(self, rebuild_id: _Optional[str] = ..., projection: _Optional[str] = ..., state: _Optional[_Union[RebuildState, str]] = ..., folded_events: _Optional[int] = ..., total_events: _Optional[int] = ..., different_rows: _Optional[int] = ..., error: _Optional[str] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class VerifyProjectionRequest(_message.Message):
    __slots__ = ("projection", "sample_size", "shards")
    PROJECTION_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_SIZE_FIELD_NUMBER: _ClassVar[int]
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    projection: str
    sample_size: int
    shards: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, projection: _Optional[str] = ..., sample_size: _Optional[int] = ..., shards: _Optional[_Iterable[int]] = ...) -> None: ...

class VerifyProjectionResponse(_message.Message):
    __slots__ = ("equal", "compared_rows", "different_rows", "differences")
    EQUAL_FIELD_NUMBER: _ClassVar[int]
    COMPARED_ROWS_FIELD_NUMBER: _ClassVar[int]
    DIFFERENT_ROWS_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCES_FIELD_NUMBER: _ClassVar[int]
    equal: bool
    compared_rows: int
    different_rows: int
    differences: _containers.RepeatedCompositeFieldContainer[RowDifference]
    def __init__(self, equal: bool = ..., compared_rows: _Optional[int] = ..., different_rows: _Optional[int] = ..., differences: _Optional[_Iterable[_Union[RowDifference, _Mapping]]] = ...) -> None: ...

class RowDifference(_message.Message):
    __slots__ = ("key_json", "live_json", "folded_json", "projection")
    KEY_JSON_FIELD_NUMBER: _ClassVar[int]
    LIVE_JSON_FIELD_NUMBER: _ClassVar[int]
    FOLDED_JSON_FIELD_NUMBER: _ClassVar[int]
    PROJECTION_FIELD_NUMBER: _ClassVar[int]
    key_json: str
    live_json: str
    folded_json: str
    projection: str
    def __init__(self, key_json: _Optional[str] = ..., live_json: _Optional[str] = ..., folded_json: _Optional[str] = ..., projection: _Optional[str] = ...) -> None: ...

class GetRebuildRequest(_message.Message):
    __slots__ = ("rebuild_id",)
    REBUILD_ID_FIELD_NUMBER: _ClassVar[int]
    rebuild_id: str
    def __init__(self, rebuild_id: _Optional[str] = ...) -> None: ...

class GetRebuildResponse(_message.Message):
    __slots__ = ("rebuild",)
    REBUILD_FIELD_NUMBER: _ClassVar[int]
    rebuild: Rebuild
    def __init__(self, rebuild: _Optional[_Union[Rebuild, _Mapping]] = ...) -> None: ...

class AbortRebuildRequest(_message.Message):
    __slots__ = ("request_id", "rebuild_id", "comment")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REBUILD_ID_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    rebuild_id: str
    comment: str
    def __init__(self, request_id: _Optional[str] = ..., rebuild_id: _Optional[str] = ..., comment: _Optional[str] = ...) -> None: ...

class AbortRebuildResponse(_message.Message):
    __slots__ = ("rebuild", "accepted_event_id")
    REBUILD_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    rebuild: Rebuild
    accepted_event_id: str
    def __init__(self, rebuild: _Optional[_Union[Rebuild, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class ListPoisonMessagesRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "filter")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    filter: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ...) -> None: ...

class ListPoisonMessagesResponse(_message.Message):
    __slots__ = ("messages", "next_page_token")
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[PoisonMessage]
    next_page_token: str
    def __init__(self, messages: _Optional[_Iterable[_Union[PoisonMessage, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class PoisonMessage(_message.Message):
    __slots__ = ("message_id", "consumer", "topic", "tenant", "error", "tries", "fail_time", "payload")
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    TRIES_FIELD_NUMBER: _ClassVar[int]
    FAIL_TIME_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    message_id: str
    consumer: str
    topic: str
    tenant: str
    error: str
    tries: int
    fail_time: _timestamp_pb2.Timestamp
    payload: bytes
    def __init__(self, message_id: _Optional[str] = ..., consumer: _Optional[str] = ..., topic: _Optional[str] = ..., tenant: _Optional[str] = ..., error: _Optional[str] = ..., tries: _Optional[int] = ..., fail_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., payload: _Optional[bytes] = ...) -> None: ...

class ReplayMessageRequest(_message.Message):
    __slots__ = ("request_id", "message_id", "comment")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    message_id: str
    comment: str
    def __init__(self, request_id: _Optional[str] = ..., message_id: _Optional[str] = ..., comment: _Optional[str] = ...) -> None: ...

class ReplayMessageResponse(_message.Message):
    __slots__ = ("accepted_event_id",)
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    accepted_event_id: str
    def __init__(self, accepted_event_id: _Optional[str] = ...) -> None: ...
