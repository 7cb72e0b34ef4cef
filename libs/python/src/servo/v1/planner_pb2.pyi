import datetime

from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import code_pb2 as _code_pb2
from servo.v1 import deployment_pb2 as _deployment_pb2
from servo.v1 import error_pb2 as _error_pb2
from servo.v1 import manifest_pb2 as _manifest_pb2
from servo.v1 import materialization_pb2 as _materialization_pb2
from servo.v1 import options_pb2 as _options_pb2
from servo.v1 import partition_pb2 as _partition_pb2
from servo.v1 import plan_pb2 as _plan_pb2
from servo.v1 import run_spec_pb2 as _run_spec_pb2
from servo.v1 import scheduler_data_pb2 as _scheduler_data_pb2
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
    __slots__ = ("deployment", "diff", "accepted_event_id", "faults")
    DEPLOYMENT_FIELD_NUMBER: _ClassVar[int]
    DIFF_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    FAULTS_FIELD_NUMBER: _ClassVar[int]
    deployment: _deployment_pb2.Deployment
    diff: _deployment_pb2.DeploymentDiff
    accepted_event_id: str
    faults: _containers.RepeatedCompositeFieldContainer[ManifestFault]
    def __init__(self, deployment: _Optional[_Union[_deployment_pb2.Deployment, _Mapping]] = ..., diff: _Optional[_Union[_deployment_pb2.DeploymentDiff, _Mapping]] = ..., accepted_event_id: _Optional[str] = ..., faults: _Optional[_Iterable[_Union[ManifestFault, _Mapping]]] = ...) -> None: ...

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

class MakePlansRequest(_message.Message):
    __slots__ = ("orders",)
    ORDERS_FIELD_NUMBER: _ClassVar[int]
    orders: _containers.RepeatedCompositeFieldContainer[PlanOrder]
    def __init__(self, orders: _Optional[_Iterable[_Union[PlanOrder, _Mapping]]] = ...) -> None: ...

class PlanOrder(_message.Message):
    __slots__ = ("tenant", "workspace", "spec", "reused", "only_task_keys", "max_tasks")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    SPEC_FIELD_NUMBER: _ClassVar[int]
    REUSED_FIELD_NUMBER: _ClassVar[int]
    ONLY_TASK_KEYS_FIELD_NUMBER: _ClassVar[int]
    MAX_TASKS_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    spec: _run_spec_pb2.RunSpec
    reused: _containers.RepeatedCompositeFieldContainer[_plan_pb2.ReusedOutput]
    only_task_keys: _containers.RepeatedScalarFieldContainer[str]
    max_tasks: int
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., spec: _Optional[_Union[_run_spec_pb2.RunSpec, _Mapping]] = ..., reused: _Optional[_Iterable[_Union[_plan_pb2.ReusedOutput, _Mapping]]] = ..., only_task_keys: _Optional[_Iterable[str]] = ..., max_tasks: _Optional[int] = ...) -> None: ...

class MakePlansResponse(_message.Message):
    __slots__ = ("results",)
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[PlanResult]
    def __init__(self, results: _Optional[_Iterable[_Union[PlanResult, _Mapping]]] = ...) -> None: ...

class PlanResult(_message.Message):
    __slots__ = ("plan", "refusal")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    plan: StoredPlan
    refusal: PlanRefusal
    def __init__(self, plan: _Optional[_Union[StoredPlan, _Mapping]] = ..., refusal: _Optional[_Union[PlanRefusal, _Mapping]] = ...) -> None: ...

class StoredPlan(_message.Message):
    __slots__ = ("plan_id", "plan_fingerprint", "deployment_id", "task_count", "plan")
    PLAN_ID_FIELD_NUMBER: _ClassVar[int]
    PLAN_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_COUNT_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    plan_id: str
    plan_fingerprint: str
    deployment_id: str
    task_count: int
    plan: _plan_pb2.Plan
    def __init__(self, plan_id: _Optional[str] = ..., plan_fingerprint: _Optional[str] = ..., deployment_id: _Optional[str] = ..., task_count: _Optional[int] = ..., plan: _Optional[_Union[_plan_pb2.Plan, _Mapping]] = ...) -> None: ...

class PlanRefusal(_message.Message):
    __slots__ = ("reason", "message", "field")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    reason: _error_pb2.ErrorReason
    message: str
    field: str
    def __init__(self, reason: _Optional[_Union[_error_pb2.ErrorReason, str]] = ..., message: _Optional[str] = ..., field: _Optional[str] = ...) -> None: ...

class ExpandPartitionsRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "selection", "partitions", "deployment_id", "page_size", "page_token", "newest_first", "count_only", "with_staleness")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    SELECTION_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIRST_FIELD_NUMBER: _ClassVar[int]
    COUNT_ONLY_FIELD_NUMBER: _ClassVar[int]
    WITH_STALENESS_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    selection: _containers.RepeatedScalarFieldContainer[str]
    partitions: _partition_pb2.PartitionSelection
    deployment_id: str
    page_size: int
    page_token: str
    newest_first: bool
    count_only: bool
    with_staleness: bool
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., selection: _Optional[_Iterable[str]] = ..., partitions: _Optional[_Union[_partition_pb2.PartitionSelection, _Mapping]] = ..., deployment_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., newest_first: bool = ..., count_only: bool = ..., with_staleness: bool = ...) -> None: ...

class ExpandPartitionsResponse(_message.Message):
    __slots__ = ("partition_keys", "total", "deployment_id", "next_page_token", "staleness")
    PARTITION_KEYS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_ID_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STALENESS_FIELD_NUMBER: _ClassVar[int]
    partition_keys: _containers.RepeatedScalarFieldContainer[str]
    total: int
    deployment_id: str
    next_page_token: str
    staleness: _containers.RepeatedCompositeFieldContainer[PartitionStaleness]
    def __init__(self, partition_keys: _Optional[_Iterable[str]] = ..., total: _Optional[int] = ..., deployment_id: _Optional[str] = ..., next_page_token: _Optional[str] = ..., staleness: _Optional[_Iterable[_Union[PartitionStaleness, _Mapping]]] = ...) -> None: ...

class PartitionStaleness(_message.Message):
    __slots__ = ("causes", "stale_since")
    CAUSES_FIELD_NUMBER: _ClassVar[int]
    STALE_SINCE_FIELD_NUMBER: _ClassVar[int]
    causes: _containers.RepeatedCompositeFieldContainer[_materialization_pb2.StaleCause]
    stale_since: _timestamp_pb2.Timestamp
    def __init__(self, causes: _Optional[_Iterable[_Union[_materialization_pb2.StaleCause, _Mapping]]] = ..., stale_since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class SummarizePartitionsRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "asset_key", "max_stretches", "in_progress")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    ASSET_KEY_FIELD_NUMBER: _ClassVar[int]
    MAX_STRETCHES_FIELD_NUMBER: _ClassVar[int]
    IN_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    asset_key: str
    max_stretches: int
    in_progress: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., asset_key: _Optional[str] = ..., max_stretches: _Optional[int] = ..., in_progress: _Optional[_Iterable[str]] = ...) -> None: ...

class SummarizePartitionsResponse(_message.Message):
    __slots__ = ("total", "counts", "stretches")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    STRETCHES_FIELD_NUMBER: _ClassVar[int]
    total: int
    counts: _containers.RepeatedCompositeFieldContainer[_scheduler_data_pb2.PartitionStateCount]
    stretches: _containers.RepeatedCompositeFieldContainer[_scheduler_data_pb2.PartitionStretch]
    def __init__(self, total: _Optional[int] = ..., counts: _Optional[_Iterable[_Union[_scheduler_data_pb2.PartitionStateCount, _Mapping]]] = ..., stretches: _Optional[_Iterable[_Union[_scheduler_data_pb2.PartitionStretch, _Mapping]]] = ...) -> None: ...

class FindStalePartitionsRequest(_message.Message):
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

class FindStalePartitionsResponse(_message.Message):
    __slots__ = ("partitions", "next_page_token", "total")
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[StalePartition]
    next_page_token: str
    total: int
    def __init__(self, partitions: _Optional[_Iterable[_Union[StalePartition, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., total: _Optional[int] = ...) -> None: ...

class StalePartition(_message.Message):
    __slots__ = ("asset_key", "partition_key", "staleness")
    ASSET_KEY_FIELD_NUMBER: _ClassVar[int]
    PARTITION_KEY_FIELD_NUMBER: _ClassVar[int]
    STALENESS_FIELD_NUMBER: _ClassVar[int]
    asset_key: str
    partition_key: str
    staleness: PartitionStaleness
    def __init__(self, asset_key: _Optional[str] = ..., partition_key: _Optional[str] = ..., staleness: _Optional[_Union[PartitionStaleness, _Mapping]] = ...) -> None: ...
