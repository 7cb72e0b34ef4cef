import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from servo.v1 import code_pb2 as _code_pb2
from servo.v1 import common_pb2 as _common_pb2
from servo.v1 import run_spec_pb2 as _run_spec_pb2
from servo.v1 import schedule_pb2 as _schedule_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WebhookScheme(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WEBHOOK_SCHEME_UNSPECIFIED: _ClassVar[WebhookScheme]
    WEBHOOK_SCHEME_STANDARD: _ClassVar[WebhookScheme]
    WEBHOOK_SCHEME_GITHUB: _ClassVar[WebhookScheme]

class EvaluationOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVALUATION_OUTCOME_UNSPECIFIED: _ClassVar[EvaluationOutcome]
    EVALUATION_OUTCOME_TRIGGERED: _ClassVar[EvaluationOutcome]
    EVALUATION_OUTCOME_SKIPPED: _ClassVar[EvaluationOutcome]
    EVALUATION_OUTCOME_FAILED: _ClassVar[EvaluationOutcome]
    EVALUATION_OUTCOME_SUPERSEDED: _ClassVar[EvaluationOutcome]
WEBHOOK_SCHEME_UNSPECIFIED: WebhookScheme
WEBHOOK_SCHEME_STANDARD: WebhookScheme
WEBHOOK_SCHEME_GITHUB: WebhookScheme
EVALUATION_OUTCOME_UNSPECIFIED: EvaluationOutcome
EVALUATION_OUTCOME_TRIGGERED: EvaluationOutcome
EVALUATION_OUTCOME_SKIPPED: EvaluationOutcome
EVALUATION_OUTCOME_FAILED: EvaluationOutcome
EVALUATION_OUTCOME_SUPERSEDED: EvaluationOutcome

class SensorDefinition(_message.Message):
    __slots__ = ("name", "description", "push", "poll", "webhook", "activity", "run", "max_runs_per_evaluation")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PUSH_FIELD_NUMBER: _ClassVar[int]
    POLL_FIELD_NUMBER: _ClassVar[int]
    WEBHOOK_FIELD_NUMBER: _ClassVar[int]
    ACTIVITY_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    MAX_RUNS_PER_EVALUATION_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    push: PushSource
    poll: PollSource
    webhook: WebhookSource
    activity: ActivitySource
    run: _run_spec_pb2.RunSpec
    max_runs_per_evaluation: int
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., push: _Optional[_Union[PushSource, _Mapping]] = ..., poll: _Optional[_Union[PollSource, _Mapping]] = ..., webhook: _Optional[_Union[WebhookSource, _Mapping]] = ..., activity: _Optional[_Union[ActivitySource, _Mapping]] = ..., run: _Optional[_Union[_run_spec_pb2.RunSpec, _Mapping]] = ..., max_runs_per_evaluation: _Optional[int] = ...) -> None: ...

class PushSource(_message.Message):
    __slots__ = ("topic", "filter")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    topic: str
    filter: str
    def __init__(self, topic: _Optional[str] = ..., filter: _Optional[str] = ...) -> None: ...

class PollSource(_message.Message):
    __slots__ = ("code", "interval", "timeout", "secrets", "pool")
    CODE_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    SECRETS_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    code: _code_pb2.CodeRef
    interval: _duration_pb2.Duration
    timeout: _duration_pb2.Duration
    secrets: _containers.RepeatedCompositeFieldContainer[_common_pb2.SecretRef]
    pool: str
    def __init__(self, code: _Optional[_Union[_code_pb2.CodeRef, _Mapping]] = ..., interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., secrets: _Optional[_Iterable[_Union[_common_pb2.SecretRef, _Mapping]]] = ..., pool: _Optional[str] = ...) -> None: ...

class WebhookSource(_message.Message):
    __slots__ = ("secret", "scheme")
    SECRET_FIELD_NUMBER: _ClassVar[int]
    SCHEME_FIELD_NUMBER: _ClassVar[int]
    secret: _common_pb2.SecretRef
    scheme: WebhookScheme
    def __init__(self, secret: _Optional[_Union[_common_pb2.SecretRef, _Mapping]] = ..., scheme: _Optional[_Union[WebhookScheme, str]] = ...) -> None: ...

class ActivitySource(_message.Message):
    __slots__ = ("asset_keys", "run_filter")
    ASSET_KEYS_FIELD_NUMBER: _ClassVar[int]
    RUN_FILTER_FIELD_NUMBER: _ClassVar[int]
    asset_keys: _containers.RepeatedScalarFieldContainer[str]
    run_filter: str
    def __init__(self, asset_keys: _Optional[_Iterable[str]] = ..., run_filter: _Optional[str] = ...) -> None: ...

class Sensor(_message.Message):
    __slots__ = ("sensor_id", "definition", "version", "state", "deployment_id", "cursor", "state_version", "last_evaluation_id", "last_evaluation_time", "next_poll_time", "create_time", "update_time", "updated_by")
    SENSOR_ID_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_ID_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    STATE_VERSION_FIELD_NUMBER: _ClassVar[int]
    LAST_EVALUATION_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_EVALUATION_TIME_FIELD_NUMBER: _ClassVar[int]
    NEXT_POLL_TIME_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATED_BY_FIELD_NUMBER: _ClassVar[int]
    sensor_id: str
    definition: SensorDefinition
    version: int
    state: _schedule_pb2.AutomationState
    deployment_id: str
    cursor: str
    state_version: int
    last_evaluation_id: str
    last_evaluation_time: _timestamp_pb2.Timestamp
    next_poll_time: _timestamp_pb2.Timestamp
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    updated_by: _common_pb2.Actor
    def __init__(self, sensor_id: _Optional[str] = ..., definition: _Optional[_Union[SensorDefinition, _Mapping]] = ..., version: _Optional[int] = ..., state: _Optional[_Union[_schedule_pb2.AutomationState, str]] = ..., deployment_id: _Optional[str] = ..., cursor: _Optional[str] = ..., state_version: _Optional[int] = ..., last_evaluation_id: _Optional[str] = ..., last_evaluation_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., next_poll_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., updated_by: _Optional[_Union[_common_pb2.Actor, _Mapping]] = ...) -> None: ...

class Evaluation(_message.Message):
    __slots__ = ("evaluation_id", "sensor_id", "record_time", "definition_version", "message_id", "poll_epoch", "cursor_before", "cursor_after", "outcome", "detail", "runs", "poll_run_id")
    EVALUATION_ID_FIELD_NUMBER: _ClassVar[int]
    SENSOR_ID_FIELD_NUMBER: _ClassVar[int]
    RECORD_TIME_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_VERSION_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    POLL_EPOCH_FIELD_NUMBER: _ClassVar[int]
    CURSOR_BEFORE_FIELD_NUMBER: _ClassVar[int]
    CURSOR_AFTER_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    POLL_RUN_ID_FIELD_NUMBER: _ClassVar[int]
    evaluation_id: str
    sensor_id: str
    record_time: _timestamp_pb2.Timestamp
    definition_version: int
    message_id: str
    poll_epoch: int
    cursor_before: str
    cursor_after: str
    outcome: EvaluationOutcome
    detail: str
    runs: _containers.RepeatedCompositeFieldContainer[RunRequest]
    poll_run_id: str
    def __init__(self, evaluation_id: _Optional[str] = ..., sensor_id: _Optional[str] = ..., record_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., definition_version: _Optional[int] = ..., message_id: _Optional[str] = ..., poll_epoch: _Optional[int] = ..., cursor_before: _Optional[str] = ..., cursor_after: _Optional[str] = ..., outcome: _Optional[_Union[EvaluationOutcome, str]] = ..., detail: _Optional[str] = ..., runs: _Optional[_Iterable[_Union[RunRequest, _Mapping]]] = ..., poll_run_id: _Optional[str] = ...) -> None: ...

class SensorResult(_message.Message):
    __slots__ = ("cursor", "runs", "skip_reason")
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    SKIP_REASON_FIELD_NUMBER: _ClassVar[int]
    cursor: str
    runs: _containers.RepeatedCompositeFieldContainer[RunRequest]
    skip_reason: str
    def __init__(self, cursor: _Optional[str] = ..., runs: _Optional[_Iterable[_Union[RunRequest, _Mapping]]] = ..., skip_reason: _Optional[str] = ...) -> None: ...

class RunRequest(_message.Message):
    __slots__ = ("run_key", "run", "run_id")
    RUN_KEY_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    run_key: str
    run: _run_spec_pb2.RunSpec
    run_id: str
    def __init__(self, run_key: _Optional[str] = ..., run: _Optional[_Union[_run_spec_pb2.RunSpec, _Mapping]] = ..., run_id: _Optional[str] = ...) -> None: ...
