from google.api import annotations_pb2 as _annotations_pb2
from servo.v1 import code_pb2 as _code_pb2
from servo.v1 import deployment_pb2 as _deployment_pb2
from servo.v1 import manifest_pb2 as _manifest_pb2
from servo.v1 import options_pb2 as _options_pb2
from servo.v1 import plan_pb2 as _plan_pb2
from servo.v1 import run_spec_pb2 as _run_spec_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DeployRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "manifest", "manifest_uri", "manifest_digest", "validate_only", "expected_version", "comment", "list_faults")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_URI_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_DIGEST_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_ONLY_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    LIST_FAULTS_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    manifest: _manifest_pb2.Manifest
    manifest_uri: str
    manifest_digest: str
    validate_only: bool
    expected_version: int
    comment: str
    list_faults: bool
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., manifest: _Optional[_Union[_manifest_pb2.Manifest, _Mapping]] = ..., manifest_uri: _Optional[str] = ..., manifest_digest: _Optional[str] = ..., validate_only: bool = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ..., list_faults: bool = ...) -> None: ...

class DeployResponse(_message.Message):
    __slots__ = ("deployment", "diff", "accepted_event_id", "faults", "warnings")
    DEPLOYMENT_FIELD_NUMBER: _ClassVar[int]
    DIFF_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    FAULTS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    deployment: _deployment_pb2.Deployment
    diff: _deployment_pb2.DeploymentDiff
    accepted_event_id: str
    faults: _containers.RepeatedCompositeFieldContainer[ManifestFault]
    warnings: _containers.RepeatedCompositeFieldContainer[ManifestFault]
    def __init__(self, deployment: _Optional[_Union[_deployment_pb2.Deployment, _Mapping]] = ..., diff: _Optional[_Union[_deployment_pb2.DeploymentDiff, _Mapping]] = ..., accepted_event_id: _Optional[str] = ..., faults: _Optional[_Iterable[_Union[ManifestFault, _Mapping]]] = ..., warnings: _Optional[_Iterable[_Union[ManifestFault, _Mapping]]] = ...) -> None: ...

class ManifestFault(_message.Message):
    __slots__ = ("field", "description")
    FIELD_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    field: str
    description: str
    def __init__(self, field: _Optional[str] = ..., description: _Optional[str] = ...) -> None: ...

class GetDeploymentRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "deployment_id", "include_manifest")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_ID_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_MANIFEST_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    deployment_id: str
    include_manifest: bool
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., deployment_id: _Optional[str] = ..., include_manifest: bool = ...) -> None: ...

class GetDeploymentResponse(_message.Message):
    __slots__ = ("deployment", "manifest")
    DEPLOYMENT_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_FIELD_NUMBER: _ClassVar[int]
    deployment: _deployment_pb2.Deployment
    manifest: _manifest_pb2.Manifest
    def __init__(self, deployment: _Optional[_Union[_deployment_pb2.Deployment, _Mapping]] = ..., manifest: _Optional[_Union[_manifest_pb2.Manifest, _Mapping]] = ...) -> None: ...

class ListDeploymentsRequest(_message.Message):
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

class ListDeploymentsResponse(_message.Message):
    __slots__ = ("deployments", "next_page_token")
    DEPLOYMENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    deployments: _containers.RepeatedCompositeFieldContainer[_deployment_pb2.Deployment]
    next_page_token: str
    def __init__(self, deployments: _Optional[_Iterable[_Union[_deployment_pb2.Deployment, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UploadArtifactRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "digest", "kind", "chunk")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    digest: str
    kind: _code_pb2.ArtifactKind
    chunk: bytes
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., digest: _Optional[str] = ..., kind: _Optional[_Union[_code_pb2.ArtifactKind, str]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class UploadArtifactResponse(_message.Message):
    __slots__ = ("digest", "byte_size", "existed")
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    BYTE_SIZE_FIELD_NUMBER: _ClassVar[int]
    EXISTED_FIELD_NUMBER: _ClassVar[int]
    digest: str
    byte_size: int
    existed: bool
    def __init__(self, digest: _Optional[str] = ..., byte_size: _Optional[int] = ..., existed: bool = ...) -> None: ...

class DownloadArtifactRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "digest", "offset")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    digest: str
    offset: int
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., digest: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class DownloadArtifactResponse(_message.Message):
    __slots__ = ("chunk", "total_size")
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    TOTAL_SIZE_FIELD_NUMBER: _ClassVar[int]
    chunk: bytes
    total_size: int
    def __init__(self, chunk: _Optional[bytes] = ..., total_size: _Optional[int] = ...) -> None: ...

class GetAssetRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "namespace", "name", "deployment_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    namespace: str
    name: str
    deployment_id: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., deployment_id: _Optional[str] = ...) -> None: ...

class GetAssetResponse(_message.Message):
    __slots__ = ("asset",)
    ASSET_FIELD_NUMBER: _ClassVar[int]
    asset: _deployment_pb2.Asset
    def __init__(self, asset: _Optional[_Union[_deployment_pb2.Asset, _Mapping]] = ...) -> None: ...

class ListAssetsRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "page_size", "page_token", "filter", "deployment_id", "selection")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_ID_FIELD_NUMBER: _ClassVar[int]
    SELECTION_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    page_size: int
    page_token: str
    filter: str
    deployment_id: str
    selection: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ..., deployment_id: _Optional[str] = ..., selection: _Optional[_Iterable[str]] = ...) -> None: ...

class ListAssetsResponse(_message.Message):
    __slots__ = ("assets", "next_page_token")
    ASSETS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    assets: _containers.RepeatedCompositeFieldContainer[_deployment_pb2.Asset]
    next_page_token: str
    def __init__(self, assets: _Optional[_Iterable[_Union[_deployment_pb2.Asset, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class GetLineageRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "selection", "deployment_id", "max_assets")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    SELECTION_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_ID_FIELD_NUMBER: _ClassVar[int]
    MAX_ASSETS_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    selection: _containers.RepeatedScalarFieldContainer[str]
    deployment_id: str
    max_assets: int
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., selection: _Optional[_Iterable[str]] = ..., deployment_id: _Optional[str] = ..., max_assets: _Optional[int] = ...) -> None: ...

class GetLineageResponse(_message.Message):
    __slots__ = ("assets", "edges", "truncated")
    ASSETS_FIELD_NUMBER: _ClassVar[int]
    EDGES_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    assets: _containers.RepeatedCompositeFieldContainer[_deployment_pb2.Asset]
    edges: _containers.RepeatedCompositeFieldContainer[_deployment_pb2.LineageEdge]
    truncated: bool
    def __init__(self, assets: _Optional[_Iterable[_Union[_deployment_pb2.Asset, _Mapping]]] = ..., edges: _Optional[_Iterable[_Union[_deployment_pb2.LineageEdge, _Mapping]]] = ..., truncated: bool = ...) -> None: ...

class PlanRunRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "spec", "max_tasks", "compare_plan_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    MAX_TASKS_FIELD_NUMBER: _ClassVar[int]
    COMPARE_PLAN_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    spec: _run_spec_pb2.RunSpec
    max_tasks: int
    compare_plan_id: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., spec: _Optional[_Union[_run_spec_pb2.RunSpec, _Mapping]] = ..., max_tasks: _Optional[int] = ..., compare_plan_id: _Optional[str] = ...) -> None: ...

class PlanRunResponse(_message.Message):
    __slots__ = ("plan", "task_count", "up_to_date_count", "request_fingerprint", "diff")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    TASK_COUNT_FIELD_NUMBER: _ClassVar[int]
    UP_TO_DATE_COUNT_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    DIFF_FIELD_NUMBER: _ClassVar[int]
    plan: _plan_pb2.Plan
    task_count: int
    up_to_date_count: int
    request_fingerprint: str
    diff: PlanDiff
    def __init__(self, plan: _Optional[_Union[_plan_pb2.Plan, _Mapping]] = ..., task_count: _Optional[int] = ..., up_to_date_count: _Optional[int] = ..., request_fingerprint: _Optional[str] = ..., diff: _Optional[_Union[PlanDiff, _Mapping]] = ...) -> None: ...

class PlanDiff(_message.Message):
    __slots__ = ("added_task_keys", "removed_task_keys", "changed_task_keys")
    ADDED_TASK_KEYS_FIELD_NUMBER: _ClassVar[int]
    REMOVED_TASK_KEYS_FIELD_NUMBER: _ClassVar[int]
    CHANGED_TASK_KEYS_FIELD_NUMBER: _ClassVar[int]
    added_task_keys: _containers.RepeatedScalarFieldContainer[str]
    removed_task_keys: _containers.RepeatedScalarFieldContainer[str]
    changed_task_keys: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, added_task_keys: _Optional[_Iterable[str]] = ..., removed_task_keys: _Optional[_Iterable[str]] = ..., changed_task_keys: _Optional[_Iterable[str]] = ...) -> None: ...

class GetPlanRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "plan_id", "page_size", "page_token")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    PLAN_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    plan_id: str
    page_size: int
    page_token: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., plan_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class GetPlanResponse(_message.Message):
    __slots__ = ("plan", "task_count", "first_ordinal", "next_page_token")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    TASK_COUNT_FIELD_NUMBER: _ClassVar[int]
    FIRST_ORDINAL_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    plan: _plan_pb2.Plan
    task_count: int
    first_ordinal: int
    next_page_token: str
    def __init__(self, plan: _Optional[_Union[_plan_pb2.Plan, _Mapping]] = ..., task_count: _Optional[int] = ..., first_ordinal: _Optional[int] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class AddDynamicPartitionsRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "set", "values")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SET_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    set: str
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., set: _Optional[str] = ..., values: _Optional[_Iterable[str]] = ...) -> None: ...

class AddDynamicPartitionsResponse(_message.Message):
    __slots__ = ("added", "accepted_event_id")
    ADDED_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    added: int
    accepted_event_id: str
    def __init__(self, added: _Optional[int] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class RemoveDynamicPartitionsRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "set", "values")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SET_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    set: str
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., set: _Optional[str] = ..., values: _Optional[_Iterable[str]] = ...) -> None: ...

class RemoveDynamicPartitionsResponse(_message.Message):
    __slots__ = ("removed", "accepted_event_id")
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    removed: int
    accepted_event_id: str
    def __init__(self, removed: _Optional[int] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class ListDynamicPartitionsRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "page_size", "page_token", "filter", "set")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    SET_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    page_size: int
    page_token: str
    filter: str
    set: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ..., set: _Optional[str] = ...) -> None: ...

class ListDynamicPartitionsResponse(_message.Message):
    __slots__ = ("partitions", "next_page_token", "total")
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[_deployment_pb2.DynamicPartition]
    next_page_token: str
    total: int
    def __init__(self, partitions: _Optional[_Iterable[_Union[_deployment_pb2.DynamicPartition, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total: _Optional[int] = ...) -> None: ...
