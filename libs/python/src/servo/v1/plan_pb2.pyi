from servo.v1 import code_pb2 as _code_pb2
from servo.v1 import common_pb2 as _common_pb2
from servo.v1 import quality_pb2 as _quality_pb2
from servo.v1 import run_spec_pb2 as _run_spec_pb2
from servo.v1 import state_pb2 as _state_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Plan(_message.Message):
    __slots__ = ("plan_id", "fingerprint", "tenant", "workspace", "deployment_id", "manifest_digest", "assets", "tasks", "reused", "config_json", "artifact")
    PLAN_ID_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_ID_FIELD_NUMBER: _ClassVar[int]
    MANIFEST_DIGEST_FIELD_NUMBER: _ClassVar[int]
    ASSETS_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    REUSED_FIELD_NUMBER: _ClassVar[int]
    CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    ARTIFACT_FIELD_NUMBER: _ClassVar[int]
    plan_id: str
    fingerprint: str
    tenant: str
    workspace: str
    deployment_id: str
    manifest_digest: str
    assets: _containers.RepeatedCompositeFieldContainer[PlannedAsset]
    tasks: _containers.RepeatedCompositeFieldContainer[PlannedTask]
    reused: _containers.RepeatedCompositeFieldContainer[ReusedOutput]
    config_json: str
    artifact: _code_pb2.CodeArtifact
    def __init__(self, plan_id: _Optional[str] = ..., fingerprint: _Optional[str] = ..., tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., deployment_id: _Optional[str] = ..., manifest_digest: _Optional[str] = ..., assets: _Optional[_Iterable[_Union[PlannedAsset, _Mapping]]] = ..., tasks: _Optional[_Iterable[_Union[PlannedTask, _Mapping]]] = ..., reused: _Optional[_Iterable[_Union[ReusedOutput, _Mapping]]] = ..., config_json: _Optional[str] = ..., artifact: _Optional[_Union[_code_pb2.CodeArtifact, _Mapping]] = ...) -> None: ...

class PlannedAsset(_message.Message):
    __slots__ = ("asset_key", "code", "config_json", "resources", "timeouts", "retry", "pool", "priority", "checks", "quarantine", "secrets", "also_makes", "code_version", "isolated")
    ASSET_KEY_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    TIMEOUTS_FIELD_NUMBER: _ClassVar[int]
    RETRY_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    CHECKS_FIELD_NUMBER: _ClassVar[int]
    QUARANTINE_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    ALSO_MAKES_FIELD_NUMBER: _ClassVar[int]
    CODE_VERSION_FIELD_NUMBER: _ClassVar[int]
    ISOLATED_FIELD_NUMBER: _ClassVar[int]
    asset_key: str
    code: _code_pb2.CodeRef
    config_json: str
    resources: _common_pb2.Resources
    timeouts: _common_pb2.Timeouts
    retry: _common_pb2.RetryPolicy
    pool: str
    priority: int
    checks: _containers.RepeatedCompositeFieldContainer[_quality_pb2.CheckDefinition]
    quarantine: bool
    secrets: _containers.RepeatedCompositeFieldContainer[_common_pb2.SecretRef]
    also_makes: _containers.RepeatedScalarFieldContainer[str]
    code_version: str
    isolated: bool
    def __init__(self, asset_key: _Optional[str] = ..., code: _Optional[_Union[_code_pb2.CodeRef, _Mapping]] = ..., config_json: _Optional[str] = ..., resources: _Optional[_Union[_common_pb2.Resources, _Mapping]] = ..., timeouts: _Optional[_Union[_common_pb2.Timeouts, _Mapping]] = ..., retry: _Optional[_Union[_common_pb2.RetryPolicy, _Mapping]] = ..., pool: _Optional[str] = ..., priority: _Optional[int] = ..., checks: _Optional[_Iterable[_Union[_quality_pb2.CheckDefinition, _Mapping]]] = ..., quarantine: bool = ..., secrets: _Optional[_Iterable[_Union[_common_pb2.SecretRef, _Mapping]]] = ..., also_makes: _Optional[_Iterable[str]] = ..., code_version: _Optional[str] = ..., isolated: bool = ...) -> None: ...

class PlannedTask(_message.Message):
    __slots__ = ("task_key", "asset", "partition_key", "operation", "upstream", "inputs", "mapped_over", "sensor", "up_to_date")
    TASK_KEY_FIELD_NUMBER: _ClassVar[int]
    ASSET_FIELD_NUMBER: _ClassVar[int]
    PARTITION_KEY_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    UPSTREAM_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    MAPPED_OVER_FIELD_NUMBER: _ClassVar[int]
    SENSOR_FIELD_NUMBER: _ClassVar[int]
    UP_TO_DATE_FIELD_NUMBER: _ClassVar[int]
    task_key: str
    asset: int
    partition_key: str
    operation: _state_pb2.Operation
    upstream: _containers.RepeatedScalarFieldContainer[int]
    inputs: _containers.RepeatedCompositeFieldContainer[PlannedInput]
    mapped_over: int
    sensor: _run_spec_pb2.SensorPoll
    up_to_date: bool
    def __init__(self, task_key: _Optional[str] = ..., asset: _Optional[int] = ..., partition_key: _Optional[str] = ..., operation: _Optional[_Union[_state_pb2.Operation, str]] = ..., upstream: _Optional[_Iterable[int]] = ..., inputs: _Optional[_Iterable[_Union[PlannedInput, _Mapping]]] = ..., mapped_over: _Optional[int] = ..., sensor: _Optional[_Union[_run_spec_pb2.SensorPoll, _Mapping]] = ..., up_to_date: bool = ...) -> None: ...

class PlannedInput(_message.Message):
    __slots__ = ("asset_key", "parameter", "partition_keys", "optional", "shape")
    ASSET_KEY_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_FIELD_NUMBER: _ClassVar[int]
    PARTITION_KEYS_FIELD_NUMBER: _ClassVar[int]
    OPTIONAL_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    asset_key: str
    parameter: str
    partition_keys: _containers.RepeatedScalarFieldContainer[str]
    optional: bool
    shape: _state_pb2.InputShape
    def __init__(self, asset_key: _Optional[str] = ..., parameter: _Optional[str] = ..., partition_keys: _Optional[_Iterable[str]] = ..., optional: bool = ..., shape: _Optional[_Union[_state_pb2.InputShape, str]] = ...) -> None: ...

class ReusedOutput(_message.Message):
    __slots__ = ("task_key", "materialization_id", "also_made")
    TASK_KEY_FIELD_NUMBER: _ClassVar[int]
    MATERIALIZATION_ID_FIELD_NUMBER: _ClassVar[int]
    ALSO_MADE_FIELD_NUMBER: _ClassVar[int]
    task_key: str
    materialization_id: str
    also_made: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, task_key: _Optional[str] = ..., materialization_id: _Optional[str] = ..., also_made: _Optional[_Iterable[str]] = ...) -> None: ...
