from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TimeGrain(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TIME_GRAIN_UNSPECIFIED: _ClassVar[TimeGrain]
    TIME_GRAIN_HOUR: _ClassVar[TimeGrain]
    TIME_GRAIN_DAY: _ClassVar[TimeGrain]
    TIME_GRAIN_WEEK: _ClassVar[TimeGrain]
    TIME_GRAIN_MONTH: _ClassVar[TimeGrain]

class ValueType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VALUE_TYPE_UNSPECIFIED: _ClassVar[ValueType]
    VALUE_TYPE_STRING: _ClassVar[ValueType]
    VALUE_TYPE_INTEGER: _ClassVar[ValueType]
    VALUE_TYPE_BOOL: _ClassVar[ValueType]
    VALUE_TYPE_DATE: _ClassVar[ValueType]
    VALUE_TYPE_INSTANT: _ClassVar[ValueType]

class PartitionCondition(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PARTITION_CONDITION_UNSPECIFIED: _ClassVar[PartitionCondition]
    PARTITION_CONDITION_MISSING: _ClassVar[PartitionCondition]
    PARTITION_CONDITION_FAILED: _ClassVar[PartitionCondition]
    PARTITION_CONDITION_STALE: _ClassVar[PartitionCondition]
    PARTITION_CONDITION_NOT_UP_TO_DATE: _ClassVar[PartitionCondition]
TIME_GRAIN_UNSPECIFIED: TimeGrain
TIME_GRAIN_HOUR: TimeGrain
TIME_GRAIN_DAY: TimeGrain
TIME_GRAIN_WEEK: TimeGrain
TIME_GRAIN_MONTH: TimeGrain
VALUE_TYPE_UNSPECIFIED: ValueType
VALUE_TYPE_STRING: ValueType
VALUE_TYPE_INTEGER: ValueType
VALUE_TYPE_BOOL: ValueType
VALUE_TYPE_DATE: ValueType
VALUE_TYPE_INSTANT: ValueType
PARTITION_CONDITION_UNSPECIFIED: PartitionCondition
PARTITION_CONDITION_MISSING: PartitionCondition
PARTITION_CONDITION_FAILED: PartitionCondition
PARTITION_CONDITION_STALE: PartitionCondition
PARTITION_CONDITION_NOT_UP_TO_DATE: PartitionCondition

class PartitionsDefinition(_message.Message):
    __slots__ = ("dimensions",)
    DIMENSIONS_FIELD_NUMBER: _ClassVar[int]
    dimensions: _containers.RepeatedCompositeFieldContainer[PartitionDimension]
    def __init__(self, dimensions: _Optional[_Iterable[_Union[PartitionDimension, _Mapping]]] = ...) -> None: ...

class PartitionDimension(_message.Message):
    __slots__ = ("name", "time", "fixed", "dynamic")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    FIXED_FIELD_NUMBER: _ClassVar[int]
    DYNAMIC_FIELD_NUMBER: _ClassVar[int]
    name: str
    time: TimeGrid
    fixed: StaticValues
    dynamic: DynamicValues
    def __init__(self, name: _Optional[str] = ..., time: _Optional[_Union[TimeGrid, _Mapping]] = ..., fixed: _Optional[_Union[StaticValues, _Mapping]] = ..., dynamic: _Optional[_Union[DynamicValues, _Mapping]] = ...) -> None: ...

class TimeGrid(_message.Message):
    __slots__ = ("grain", "time_zone", "start", "end")
    GRAIN_FIELD_NUMBER: _ClassVar[int]
    TIME_ZONE_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    grain: TimeGrain
    time_zone: str
    start: str
    end: str
    def __init__(self, grain: _Optional[_Union[TimeGrain, str]] = ..., time_zone: _Optional[str] = ..., start: _Optional[str] = ..., end: _Optional[str] = ...) -> None: ...

class StaticValues(_message.Message):
    __slots__ = ("type", "values")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    type: ValueType
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, type: _Optional[_Union[ValueType, str]] = ..., values: _Optional[_Iterable[str]] = ...) -> None: ...

class DynamicValues(_message.Message):
    __slots__ = ("set",)
    SET_FIELD_NUMBER: _ClassVar[int]
    set: str
    def __init__(self, set: _Optional[str] = ...) -> None: ...

class PartitionMapping(_message.Message):
    __slots__ = ("dimensions",)
    DIMENSIONS_FIELD_NUMBER: _ClassVar[int]
    dimensions: _containers.RepeatedCompositeFieldContainer[DimensionMapping]
    def __init__(self, dimensions: _Optional[_Iterable[_Union[DimensionMapping, _Mapping]]] = ...) -> None: ...

class DimensionMapping(_message.Message):
    __slots__ = ("upstream", "downstream", "identity", "window", "all", "latest", "table")
    UPSTREAM_FIELD_NUMBER: _ClassVar[int]
    DOWNSTREAM_FIELD_NUMBER: _ClassVar[int]
    IDENTITY_FIELD_NUMBER: _ClassVar[int]
    WINDOW_FIELD_NUMBER: _ClassVar[int]
    ALL_FIELD_NUMBER: _ClassVar[int]
    LATEST_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    upstream: str
    downstream: str
    identity: bool
    window: TimeWindow
    all: bool
    latest: int
    table: ValueTable
    def __init__(self, upstream: _Optional[str] = ..., downstream: _Optional[str] = ..., identity: bool = ..., window: _Optional[_Union[TimeWindow, _Mapping]] = ..., all: bool = ..., latest: _Optional[int] = ..., table: _Optional[_Union[ValueTable, _Mapping]] = ...) -> None: ...

class TimeWindow(_message.Message):
    __slots__ = ("start_offset", "end_offset")
    START_OFFSET_FIELD_NUMBER: _ClassVar[int]
    END_OFFSET_FIELD_NUMBER: _ClassVar[int]
    start_offset: int
    end_offset: int
    def __init__(self, start_offset: _Optional[int] = ..., end_offset: _Optional[int] = ...) -> None: ...

class ValueTable(_message.Message):
    __slots__ = ("entries",)
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[ValueTableEntry]
    def __init__(self, entries: _Optional[_Iterable[_Union[ValueTableEntry, _Mapping]]] = ...) -> None: ...

class ValueTableEntry(_message.Message):
    __slots__ = ("downstream", "upstream")
    DOWNSTREAM_FIELD_NUMBER: _ClassVar[int]
    UPSTREAM_FIELD_NUMBER: _ClassVar[int]
    downstream: str
    upstream: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, downstream: _Optional[str] = ..., upstream: _Optional[_Iterable[str]] = ...) -> None: ...

class PartitionSelection(_message.Message):
    __slots__ = ("keys", "slices", "all", "latest", "only")
    KEYS_FIELD_NUMBER: _ClassVar[int]
    SLICES_FIELD_NUMBER: _ClassVar[int]
    ALL_FIELD_NUMBER: _ClassVar[int]
    LATEST_FIELD_NUMBER: _ClassVar[int]
    ONLY_FIELD_NUMBER: _ClassVar[int]
    keys: PartitionKeys
    slices: PartitionSlices
    all: bool
    latest: int
    only: PartitionCondition
    def __init__(self, keys: _Optional[_Union[PartitionKeys, _Mapping]] = ..., slices: _Optional[_Union[PartitionSlices, _Mapping]] = ..., all: bool = ..., latest: _Optional[int] = ..., only: _Optional[_Union[PartitionCondition, str]] = ...) -> None: ...

class PartitionKeys(_message.Message):
    __slots__ = ("keys",)
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, keys: _Optional[_Iterable[str]] = ...) -> None: ...

class PartitionSlices(_message.Message):
    __slots__ = ("slices",)
    SLICES_FIELD_NUMBER: _ClassVar[int]
    slices: _containers.RepeatedCompositeFieldContainer[DimensionSlice]
    def __init__(self, slices: _Optional[_Iterable[_Union[DimensionSlice, _Mapping]]] = ...) -> None: ...

class DimensionSlice(_message.Message):
    __slots__ = ("dimension", "values", "start", "end")
    DIMENSION_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    dimension: str
    values: _containers.RepeatedScalarFieldContainer[str]
    start: str
    end: str
    def __init__(self, dimension: _Optional[str] = ..., values: _Optional[_Iterable[str]] = ..., start: _Optional[str] = ..., end: _Optional[str] = ...) -> None: ...
