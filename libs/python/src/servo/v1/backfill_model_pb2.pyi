import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import common_pb2 as _common_pb2
from servo.v1 import partition_pb2 as _partition_pb2
from servo.v1 import run_spec_pb2 as _run_spec_pb2
from servo.v1 import state_pb2 as _state_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BackfillState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BACKFILL_STATE_UNSPECIFIED: _ClassVar[BackfillState]
    BACKFILL_STATE_PENDING: _ClassVar[BackfillState]
    BACKFILL_STATE_RUNNING: _ClassVar[BackfillState]
    BACKFILL_STATE_PAUSED: _ClassVar[BackfillState]
    BACKFILL_STATE_SUCCEEDED: _ClassVar[BackfillState]
    BACKFILL_STATE_FAILED: _ClassVar[BackfillState]
    BACKFILL_STATE_CANCELLED: _ClassVar[BackfillState]

class BackfillReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BACKFILL_REASON_UNSPECIFIED: _ClassVar[BackfillReason]
    BACKFILL_REASON_STARTED: _ClassVar[BackfillReason]
    BACKFILL_REASON_ALL_CHUNKS_ENDED: _ClassVar[BackfillReason]
    BACKFILL_REASON_THRESHOLD_PASSED: _ClassVar[BackfillReason]
    BACKFILL_REASON_PAUSED: _ClassVar[BackfillReason]
    BACKFILL_REASON_RESUMED: _ClassVar[BackfillReason]
    BACKFILL_REASON_CANCELLED: _ClassVar[BackfillReason]
    BACKFILL_REASON_PLAN_FAILED: _ClassVar[BackfillReason]
BACKFILL_STATE_UNSPECIFIED: BackfillState
BACKFILL_STATE_PENDING: BackfillState
BACKFILL_STATE_RUNNING: BackfillState
BACKFILL_STATE_PAUSED: BackfillState
BACKFILL_STATE_SUCCEEDED: BackfillState
BACKFILL_STATE_FAILED: BackfillState
BACKFILL_STATE_CANCELLED: BackfillState
BACKFILL_REASON_UNSPECIFIED: BackfillReason
BACKFILL_REASON_STARTED: BackfillReason
BACKFILL_REASON_ALL_CHUNKS_ENDED: BackfillReason
BACKFILL_REASON_THRESHOLD_PASSED: BackfillReason
BACKFILL_REASON_PAUSED: BackfillReason
BACKFILL_REASON_RESUMED: BackfillReason
BACKFILL_REASON_CANCELLED: BackfillReason
BACKFILL_REASON_PLAN_FAILED: BackfillReason

class BackfillSpec(_message.Message):
    __slots__ = ("run", "chunk_size", "max_concurrent_runs", "max_failed_partitions", "max_failed_share_ppm", "newest_first", "budget_id")
    RUN_FIELD_NUMBER: _ClassVar[int]
    CHUNK_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_CONCURRENT_RUNS_FIELD_NUMBER: _ClassVar[int]
    MAX_FAILED_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_FAILED_SHARE_PPM_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIRST_FIELD_NUMBER: _ClassVar[int]
    BUDGET_ID_FIELD_NUMBER: _ClassVar[int]
    run: _run_spec_pb2.RunSpec
    chunk_size: int
    max_concurrent_runs: int
    max_failed_partitions: int
    max_failed_share_ppm: int
    newest_first: bool
    budget_id: str
    def __init__(self, run: _Optional[_Union[_run_spec_pb2.RunSpec, _Mapping]] = ..., chunk_size: _Optional[int] = ..., max_concurrent_runs: _Optional[int] = ..., max_failed_partitions: _Optional[int] = ..., max_failed_share_ppm: _Optional[int] = ..., newest_first: bool = ..., budget_id: _Optional[str] = ...) -> None: ...

class Backfill(_message.Message):
    __slots__ = ("backfill_id", "spec", "state", "version", "reason", "detail", "deployment_id", "progress", "parent_backfill_id", "requested_by", "create_time", "start_time", "end_time", "estimated_end_time")
    BACKFILL_ID_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_ID_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    PARENT_BACKFILL_ID_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_BY_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    START_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    ESTIMATED_END_TIME_FIELD_NUMBER: _ClassVar[int]
    backfill_id: str
    spec: BackfillSpec
    state: BackfillState
    version: int
    reason: BackfillReason
    detail: str
    deployment_id: str
    progress: BackfillProgress
    parent_backfill_id: str
    requested_by: _common_pb2.Actor
    create_time: _timestamp_pb2.Timestamp
    start_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    estimated_end_time: _timestamp_pb2.Timestamp
    def __init__(self, backfill_id: _Optional[str] = ..., spec: _Optional[_Union[BackfillSpec, _Mapping]] = ..., state: _Optional[_Union[BackfillState, str]] = ..., version: _Optional[int] = ..., reason: _Optional[_Union[BackfillReason, str]] = ..., detail: _Optional[str] = ..., deployment_id: _Optional[str] = ..., progress: _Optional[_Union[BackfillProgress, _Mapping]] = ..., parent_backfill_id: _Optional[str] = ..., requested_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., start_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., estimated_end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class BackfillProgress(_message.Message):
    __slots__ = ("total_partitions", "succeeded_partitions", "failed_partitions", "skipped_partitions", "cancelled_partitions", "total_chunks", "planned_chunks", "running_chunks", "ended_chunks")
    TOTAL_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    SUCCEEDED_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    FAILED_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    CANCELLED_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_CHUNKS_FIELD_NUMBER: _ClassVar[int]
    PLANNED_CHUNKS_FIELD_NUMBER: _ClassVar[int]
    RUNNING_CHUNKS_FIELD_NUMBER: _ClassVar[int]
    ENDED_CHUNKS_FIELD_NUMBER: _ClassVar[int]
    total_partitions: int
    succeeded_partitions: int
    failed_partitions: int
    skipped_partitions: int
    cancelled_partitions: int
    total_chunks: int
    planned_chunks: int
    running_chunks: int
    ended_chunks: int
    def __init__(self, total_partitions: _Optional[int] = ..., succeeded_partitions: _Optional[int] = ..., failed_partitions: _Optional[int] = ..., skipped_partitions: _Optional[int] = ..., cancelled_partitions: _Optional[int] = ..., total_chunks: _Optional[int] = ..., planned_chunks: _Optional[int] = ..., running_chunks: _Optional[int] = ..., ended_chunks: _Optional[int] = ...) -> None: ...

class Chunk(_message.Message):
    __slots__ = ("backfill_id", "chunk_index", "partitions", "partition_count", "run_key", "run_id", "run_state", "failed_partitions", "plan_time", "end_time")
    BACKFILL_ID_FIELD_NUMBER: _ClassVar[int]
    CHUNK_INDEX_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    PARTITION_COUNT_FIELD_NUMBER: _ClassVar[int]
    RUN_KEY_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    RUN_STATE_FIELD_NUMBER: _ClassVar[int]
    FAILED_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    PLAN_TIME_FIELD_NUMBER: _ClassVar[int]
    END_TIME_FIELD_NUMBER: _ClassVar[int]
    backfill_id: str
    chunk_index: int
    partitions: _partition_pb2.PartitionSelection
    partition_count: int
    run_key: str
    run_id: str
    run_state: _state_pb2.RunState
    failed_partitions: int
    plan_time: _timestamp_pb2.Timestamp
    end_time: _timestamp_pb2.Timestamp
    def __init__(self, backfill_id: _Optional[str] = ..., chunk_index: _Optional[int] = ..., partitions: _Optional[_Union[_partition_pb2.PartitionSelection, _Mapping]] = ..., partition_count: _Optional[int] = ..., run_key: _Optional[str] = ..., run_id: _Optional[str] = ..., run_state: _Optional[_Union[_state_pb2.RunState, str]] = ..., failed_partitions: _Optional[int] = ..., plan_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., end_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
