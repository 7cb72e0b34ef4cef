import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Severity(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SEVERITY_UNSPECIFIED: _ClassVar[Severity]
    SEVERITY_INFO: _ClassVar[Severity]
    SEVERITY_WARNING: _ClassVar[Severity]
    SEVERITY_ERROR: _ClassVar[Severity]
    SEVERITY_CRITICAL: _ClassVar[Severity]

class CheckPhase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CHECK_PHASE_UNSPECIFIED: _ClassVar[CheckPhase]
    CHECK_PHASE_PRE: _ClassVar[CheckPhase]
    CHECK_PHASE_POST: _ClassVar[CheckPhase]

class Gating(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    GATING_UNSPECIFIED: _ClassVar[Gating]
    GATING_ALLOW: _ClassVar[Gating]
    GATING_WARN: _ClassVar[Gating]
    GATING_BLOCK: _ClassVar[Gating]
    GATING_QUARANTINE: _ClassVar[Gating]
SEVERITY_UNSPECIFIED: Severity
SEVERITY_INFO: Severity
SEVERITY_WARNING: Severity
SEVERITY_ERROR: Severity
SEVERITY_CRITICAL: Severity
CHECK_PHASE_UNSPECIFIED: CheckPhase
CHECK_PHASE_PRE: CheckPhase
CHECK_PHASE_POST: CheckPhase
GATING_UNSPECIFIED: Gating
GATING_ALLOW: Gating
GATING_WARN: Gating
GATING_BLOCK: Gating
GATING_QUARANTINE: Gating

class CheckDefinition(_message.Message):
    __slots__ = ("name", "description", "severity", "phase", "timeout", "row_count", "not_null", "unique", "freshness", "schema", "sql", "code")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    ROW_COUNT_FIELD_NUMBER: _ClassVar[int]
    NOT_NULL_FIELD_NUMBER: _ClassVar[int]
    UNIQUE_FIELD_NUMBER: _ClassVar[int]
    FRESHNESS_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    SQL_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    severity: Severity
    phase: CheckPhase
    timeout: _duration_pb2.Duration
    row_count: RowCountCheck
    not_null: NotNullCheck
    unique: UniqueCheck
    freshness: FreshnessCheck
    schema: SchemaCheck
    sql: SqlCheck
    code: CodeCheck
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., severity: _Optional[_Union[Severity, str]] = ..., phase: _Optional[_Union[CheckPhase, str]] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., row_count: _Optional[_Union[RowCountCheck, _Mapping]] = ..., not_null: _Optional[_Union[NotNullCheck, _Mapping]] = ..., unique: _Optional[_Union[UniqueCheck, _Mapping]] = ..., freshness: _Optional[_Union[FreshnessCheck, _Mapping]] = ..., schema: _Optional[_Union[SchemaCheck, _Mapping]] = ..., sql: _Optional[_Union[SqlCheck, _Mapping]] = ..., code: _Optional[_Union[CodeCheck, _Mapping]] = ...) -> None: ...

class RowCountCheck(_message.Message):
    __slots__ = ("min", "max", "min_share_of_previous_ppm")
    MIN_FIELD_NUMBER: _ClassVar[int]
    MAX_FIELD_NUMBER: _ClassVar[int]
    MIN_SHARE_OF_PREVIOUS_PPM_FIELD_NUMBER: _ClassVar[int]
    min: int
    max: int
    min_share_of_previous_ppm: int
    def __init__(self, min: _Optional[int] = ..., max: _Optional[int] = ..., min_share_of_previous_ppm: _Optional[int] = ...) -> None: ...

class NotNullCheck(_message.Message):
    __slots__ = ("columns",)
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    columns: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, columns: _Optional[_Iterable[str]] = ...) -> None: ...

class UniqueCheck(_message.Message):
    __slots__ = ("columns",)
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    columns: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, columns: _Optional[_Iterable[str]] = ...) -> None: ...

class FreshnessCheck(_message.Message):
    __slots__ = ("column", "max_age")
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    MAX_AGE_FIELD_NUMBER: _ClassVar[int]
    column: str
    max_age: _duration_pb2.Duration
    def __init__(self, column: _Optional[str] = ..., max_age: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class SchemaCheck(_message.Message):
    __slots__ = ("columns", "allow_extra")
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    ALLOW_EXTRA_FIELD_NUMBER: _ClassVar[int]
    columns: _containers.RepeatedCompositeFieldContainer[ColumnSpec]
    allow_extra: bool
    def __init__(self, columns: _Optional[_Iterable[_Union[ColumnSpec, _Mapping]]] = ..., allow_extra: bool = ...) -> None: ...

class ColumnSpec(_message.Message):
    __slots__ = ("name", "type", "nullable")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NULLABLE_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    nullable: bool
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., nullable: bool = ...) -> None: ...

class SqlCheck(_message.Message):
    __slots__ = ("query",)
    QUERY_FIELD_NUMBER: _ClassVar[int]
    query: str
    def __init__(self, query: _Optional[str] = ...) -> None: ...

class CodeCheck(_message.Message):
    __slots__ = ("module", "function")
    MODULE_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    module: str
    function: str
    def __init__(self, module: _Optional[str] = ..., function: _Optional[str] = ...) -> None: ...

class CheckResult(_message.Message):
    __slots__ = ("name", "passed", "severity", "phase", "message", "actual", "expected", "errored", "duration", "metadata")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    PASSED_FIELD_NUMBER: _ClassVar[int]
    SEVERITY_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ACTUAL_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    ERRORED_FIELD_NUMBER: _ClassVar[int]
    DURATION_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    name: str
    passed: bool
    severity: Severity
    phase: CheckPhase
    message: str
    actual: str
    expected: str
    errored: bool
    duration: _duration_pb2.Duration
    metadata: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., passed: bool = ..., severity: _Optional[_Union[Severity, str]] = ..., phase: _Optional[_Union[CheckPhase, str]] = ..., message: _Optional[str] = ..., actual: _Optional[str] = ..., expected: _Optional[str] = ..., errored: bool = ..., duration: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., metadata: _Optional[_Mapping[str, str]] = ...) -> None: ...
