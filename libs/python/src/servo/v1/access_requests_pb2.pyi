import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import access_model_pb2 as _access_model_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CreateTenantRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "display_name")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    display_name: str
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., display_name: _Optional[str] = ...) -> None: ...

class CreateTenantResponse(_message.Message):
    __slots__ = ("tenant", "accepted_event_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: _access_model_pb2.Tenant
    accepted_event_id: str
    def __init__(self, tenant: _Optional[_Union[_access_model_pb2.Tenant, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class GetTenantRequest(_message.Message):
    __slots__ = ("tenant",)
    TENANT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    def __init__(self, tenant: _Optional[str] = ...) -> None: ...

class GetTenantResponse(_message.Message):
    __slots__ = ("tenant",)
    TENANT_FIELD_NUMBER: _ClassVar[int]
    tenant: _access_model_pb2.Tenant
    def __init__(self, tenant: _Optional[_Union[_access_model_pb2.Tenant, _Mapping]] = ...) -> None: ...

class ListTenantsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "filter")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    filter: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ...) -> None: ...

class ListTenantsResponse(_message.Message):
    __slots__ = ("tenants", "next_page_token")
    TENANTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    tenants: _containers.RepeatedCompositeFieldContainer[_access_model_pb2.Tenant]
    next_page_token: str
    def __init__(self, tenants: _Optional[_Iterable[_Union[_access_model_pb2.Tenant, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class SuspendTenantRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class SuspendTenantResponse(_message.Message):
    __slots__ = ("tenant", "accepted_event_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: _access_model_pb2.Tenant
    accepted_event_id: str
    def __init__(self, tenant: _Optional[_Union[_access_model_pb2.Tenant, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class ResumeTenantRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class ResumeTenantResponse(_message.Message):
    __slots__ = ("tenant", "accepted_event_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: _access_model_pb2.Tenant
    accepted_event_id: str
    def __init__(self, tenant: _Optional[_Union[_access_model_pb2.Tenant, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class CreateWorkspaceRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "workspace", "display_name")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    workspace: str
    display_name: str
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., workspace: _Optional[str] = ..., display_name: _Optional[str] = ...) -> None: ...

class CreateWorkspaceResponse(_message.Message):
    __slots__ = ("workspace", "accepted_event_id")
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    workspace: _access_model_pb2.Workspace
    accepted_event_id: str
    def __init__(self, workspace: _Optional[_Union[_access_model_pb2.Workspace, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class GetWorkspaceRequest(_message.Message):
    __slots__ = ("tenant", "workspace")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ...) -> None: ...

class GetWorkspaceResponse(_message.Message):
    __slots__ = ("workspace",)
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    workspace: _access_model_pb2.Workspace
    def __init__(self, workspace: _Optional[_Union[_access_model_pb2.Workspace, _Mapping]] = ...) -> None: ...

class ListWorkspacesRequest(_message.Message):
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

class ListWorkspacesResponse(_message.Message):
    __slots__ = ("workspaces", "next_page_token")
    WORKSPACES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    workspaces: _containers.RepeatedCompositeFieldContainer[_access_model_pb2.Workspace]
    next_page_token: str
    def __init__(self, workspaces: _Optional[_Iterable[_Union[_access_model_pb2.Workspace, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class SuspendWorkspaceRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class SuspendWorkspaceResponse(_message.Message):
    __slots__ = ("workspace", "accepted_event_id")
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    workspace: _access_model_pb2.Workspace
    accepted_event_id: str
    def __init__(self, workspace: _Optional[_Union[_access_model_pb2.Workspace, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class ResumeWorkspaceRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class ResumeWorkspaceResponse(_message.Message):
    __slots__ = ("workspace", "accepted_event_id")
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    workspace: _access_model_pb2.Workspace
    accepted_event_id: str
    def __init__(self, workspace: _Optional[_Union[_access_model_pb2.Workspace, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class CreateApiKeyRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "name", "roles", "workspaces", "expire_time")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    WORKSPACES_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    name: str
    roles: _containers.RepeatedScalarFieldContainer[str]
    workspaces: _containers.RepeatedScalarFieldContainer[str]
    expire_time: _timestamp_pb2.Timestamp
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., name: _Optional[str] = ..., roles: _Optional[_Iterable[str]] = ..., workspaces: _Optional[_Iterable[str]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CreateApiKeyResponse(_message.Message):
    __slots__ = ("key", "secret", "accepted_event_id")
    KEY_FIELD_NUMBER: _ClassVar[int]
    SECRET_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    key: _access_model_pb2.ApiKey
    secret: str
    accepted_event_id: str
    def __init__(self, key: _Optional[_Union[_access_model_pb2.ApiKey, _Mapping]] = ..., secret: _Optional[str] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class ListApiKeysRequest(_message.Message):
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

class ListApiKeysResponse(_message.Message):
    __slots__ = ("keys", "next_page_token")
    KEYS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedCompositeFieldContainer[_access_model_pb2.ApiKey]
    next_page_token: str
    def __init__(self, keys: _Optional[_Iterable[_Union[_access_model_pb2.ApiKey, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RevokeApiKeyRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "key_id", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_ID_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    key_id: str
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., key_id: _Optional[str] = ..., comment: _Optional[str] = ...) -> None: ...

class RevokeApiKeyResponse(_message.Message):
    __slots__ = ("key", "accepted_event_id")
    KEY_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    key: _access_model_pb2.ApiKey
    accepted_event_id: str
    def __init__(self, key: _Optional[_Union[_access_model_pb2.ApiKey, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class CreateRoleRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "role", "description", "permissions")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    role: str
    description: str
    permissions: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., role: _Optional[str] = ..., description: _Optional[str] = ..., permissions: _Optional[_Iterable[str]] = ...) -> None: ...

class CreateRoleResponse(_message.Message):
    __slots__ = ("role", "accepted_event_id")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    role: _access_model_pb2.Role
    accepted_event_id: str
    def __init__(self, role: _Optional[_Union[_access_model_pb2.Role, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class ListRolesRequest(_message.Message):
    __slots__ = ("tenant", "page_size", "page_token")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    page_size: int
    page_token: str
    def __init__(self, tenant: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListRolesResponse(_message.Message):
    __slots__ = ("roles", "next_page_token")
    ROLES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    roles: _containers.RepeatedCompositeFieldContainer[_access_model_pb2.Role]
    next_page_token: str
    def __init__(self, roles: _Optional[_Iterable[_Union[_access_model_pb2.Role, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdateRoleRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "role", "description", "permissions", "expected_version")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    role: str
    description: str
    permissions: _containers.RepeatedScalarFieldContainer[str]
    expected_version: int
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., role: _Optional[str] = ..., description: _Optional[str] = ..., permissions: _Optional[_Iterable[str]] = ..., expected_version: _Optional[int] = ...) -> None: ...

class UpdateRoleResponse(_message.Message):
    __slots__ = ("role", "accepted_event_id")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    role: _access_model_pb2.Role
    accepted_event_id: str
    def __init__(self, role: _Optional[_Union[_access_model_pb2.Role, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class DeleteRoleRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "role", "expected_version")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    role: str
    expected_version: int
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., role: _Optional[str] = ..., expected_version: _Optional[int] = ...) -> None: ...

class DeleteRoleResponse(_message.Message):
    __slots__ = ("accepted_event_id",)
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    accepted_event_id: str
    def __init__(self, accepted_event_id: _Optional[str] = ...) -> None: ...

class CreateRoleBindingRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "principal", "role", "workspace")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    principal: str
    role: str
    workspace: str
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., principal: _Optional[str] = ..., role: _Optional[str] = ..., workspace: _Optional[str] = ...) -> None: ...

class CreateRoleBindingResponse(_message.Message):
    __slots__ = ("binding", "accepted_event_id")
    BINDING_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    binding: _access_model_pb2.RoleBinding
    accepted_event_id: str
    def __init__(self, binding: _Optional[_Union[_access_model_pb2.RoleBinding, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class ListRoleBindingsRequest(_message.Message):
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

class ListRoleBindingsResponse(_message.Message):
    __slots__ = ("bindings", "next_page_token")
    BINDINGS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    bindings: _containers.RepeatedCompositeFieldContainer[_access_model_pb2.RoleBinding]
    next_page_token: str
    def __init__(self, bindings: _Optional[_Iterable[_Union[_access_model_pb2.RoleBinding, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteRoleBindingRequest(_message.Message):
    __slots__ = ("tenant", "request_id", "binding_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    BINDING_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    request_id: str
    binding_id: str
    def __init__(self, tenant: _Optional[str] = ..., request_id: _Optional[str] = ..., binding_id: _Optional[str] = ...) -> None: ...

class DeleteRoleBindingResponse(_message.Message):
    __slots__ = ("accepted_event_id",)
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    accepted_event_id: str
    def __init__(self, accepted_event_id: _Optional[str] = ...) -> None: ...

class WhoAmIRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WhoAmIResponse(_message.Message):
    __slots__ = ("principal", "platform_operator", "grants", "expire_time")
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    PLATFORM_OPERATOR_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    principal: str
    platform_operator: bool
    grants: _containers.RepeatedCompositeFieldContainer[Grant]
    expire_time: _timestamp_pb2.Timestamp
    def __init__(self, principal: _Optional[str] = ..., platform_operator: bool = ..., grants: _Optional[_Iterable[_Union[Grant, _Mapping]]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Grant(_message.Message):
    __slots__ = ("tenant", "workspaces", "roles", "permissions")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACES_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    PERMISSIONS_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspaces: _containers.RepeatedScalarFieldContainer[str]
    roles: _containers.RepeatedScalarFieldContainer[str]
    permissions: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tenant: _Optional[str] = ..., workspaces: _Optional[_Iterable[str]] = ..., roles: _Optional[_Iterable[str]] = ..., permissions: _Optional[_Iterable[str]] = ...) -> None: ...

class ListAuditEventsRequest(_message.Message):
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

class ListAuditEventsResponse(_message.Message):
    __slots__ = ("events", "next_page_token")
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    events: _containers.RepeatedCompositeFieldContainer[_access_model_pb2.AuditEvent]
    next_page_token: str
    def __init__(self, events: _Optional[_Iterable[_Union[_access_model_pb2.AuditEvent, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
