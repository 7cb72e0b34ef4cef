import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AuditOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    AUDIT_OUTCOME_UNSPECIFIED: _ClassVar[AuditOutcome]
    AUDIT_OUTCOME_ACCEPTED: _ClassVar[AuditOutcome]
    AUDIT_OUTCOME_FAILED: _ClassVar[AuditOutcome]
    AUDIT_OUTCOME_DENIED: _ClassVar[AuditOutcome]
AUDIT_OUTCOME_UNSPECIFIED: AuditOutcome
AUDIT_OUTCOME_ACCEPTED: AuditOutcome
AUDIT_OUTCOME_FAILED: AuditOutcome
AUDIT_OUTCOME_DENIED: AuditOutcome

class Tenant(_message.Message):
    __slots__ = ("tenant", "display_name", "suspended", "suspend_comment", "version", "create_time")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    SUSPENDED_FIELD_NUMBER: _ClassVar[int]
    SUSPEND_COMMENT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    display_name: str
    suspended: bool
    suspend_comment: str
    version: int
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, tenant: _Optional[str] = ..., display_name: _Optional[str] = ..., suspended: bool = ..., suspend_comment: _Optional[str] = ..., version: _Optional[int] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Workspace(_message.Message):
    __slots__ = ("workspace", "display_name", "suspended", "suspend_comment", "version", "create_time")
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    SUSPENDED_FIELD_NUMBER: _ClassVar[int]
    SUSPEND_COMMENT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    workspace: str
    display_name: str
    suspended: bool
    suspend_comment: str
    version: int
    create_time: _timestamp_pb2.Timestamp
    def __init__(self, workspace: _Optional[str] = ..., display_name: _Optional[str] = ..., suspended: bool = ..., suspend_comment: _Optional[str] = ..., version: _Optional[int] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class ApiKey(_message.Message):
    __slots__ = ("key_id", "name", "roles", "workspaces", "expire_time", "revoke_time", "use_time", "create_time", "created_by")
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    WORKSPACES_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    REVOKE_TIME_FIELD_NUMBER: _ClassVar[int]
    USE_TIME_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    CREATED_BY_FIELD_NUMBER: _ClassVar[int]
    key_id: str
    name: str
    roles: _containers.RepeatedScalarFieldContainer[str]
    workspaces: _containers.RepeatedScalarFieldContainer[str]
    expire_time: _timestamp_pb2.Timestamp
    revoke_time: _timestamp_pb2.Timestamp
    use_time: _timestamp_pb2.Timestamp
    create_time: _timestamp_pb2.Timestamp
    created_by: str
    def __init__(self, key_id: _Optional[str] = ..., name: _Optional[str] = ..., roles: _Optional[_Iterable[str]] = ..., workspaces: _Optional[_Iterable[str]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., revoke_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., use_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., created_by: _Optional[str] = ...) -> None: ...

class Role(_message.Message):
    __slots__ = ("role", "description", "permissions", "built_in", "version")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    BUILT_IN_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    role: str
    description: str
    permissions: _containers.RepeatedScalarFieldContainer[str]
    built_in: bool
    version: int
    def __init__(self, role: _Optional[str] = ..., description: _Optional[str] = ..., permissions: _Optional[_Iterable[str]] = ..., built_in: bool = ..., version: _Optional[int] = ...) -> None: ...

class RoleBinding(_message.Message):
    __slots__ = ("binding_id", "principal", "role", "workspace", "create_time", "created_by")
    BINDING_ID_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    CREATED_BY_FIELD_NUMBER: _ClassVar[int]
    binding_id: str
    principal: str
    role: str
    workspace: str
    create_time: _timestamp_pb2.Timestamp
    created_by: str
    def __init__(self, binding_id: _Optional[str] = ..., principal: _Optional[str] = ..., role: _Optional[str] = ..., workspace: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., created_by: _Optional[str] = ...) -> None: ...

class AuditEvent(_message.Message):
    __slots__ = ("audit_event_id", "time", "principal", "remote_address", "method", "workspace", "request_id", "outcome", "reason", "subject", "event_id", "trace_id")
    AUDIT_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    REMOTE_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    audit_event_id: str
    time: _timestamp_pb2.Timestamp
    principal: str
    remote_address: str
    method: str
    workspace: str
    request_id: str
    outcome: AuditOutcome
    reason: str
    subject: str
    event_id: str
    trace_id: str
    def __init__(self, audit_event_id: _Optional[str] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., principal: _Optional[str] = ..., remote_address: _Optional[str] = ..., method: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., outcome: _Optional[_Union[AuditOutcome, str]] = ..., reason: _Optional[str] = ..., subject: _Optional[str] = ..., event_id: _Optional[str] = ..., trace_id: _Optional[str] = ...) -> None: ...
