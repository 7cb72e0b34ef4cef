from servo.v1 import sensor_pb2 as _sensor_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CreateSensorRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "definition", "paused", "cursor", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    definition: _sensor_pb2.SensorDefinition
    paused: bool
    cursor: str
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., definition: _Optional[_Union[_sensor_pb2.SensorDefinition, _Mapping]] = ..., paused: bool = ..., cursor: _Optional[str] = ..., comment: _Optional[str] = ...) -> None: ...

class CreateSensorResponse(_message.Message):
    __slots__ = ("sensor", "accepted_event_id")
    SENSOR_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    sensor: _sensor_pb2.Sensor
    accepted_event_id: str
    def __init__(self, sensor: _Optional[_Union[_sensor_pb2.Sensor, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class GetSensorRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "sensor_id")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    SENSOR_ID_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    sensor_id: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., sensor_id: _Optional[str] = ...) -> None: ...

class GetSensorResponse(_message.Message):
    __slots__ = ("sensor",)
    SENSOR_FIELD_NUMBER: _ClassVar[int]
    sensor: _sensor_pb2.Sensor
    def __init__(self, sensor: _Optional[_Union[_sensor_pb2.Sensor, _Mapping]] = ...) -> None: ...

class ListSensorsRequest(_message.Message):
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

class ListSensorsResponse(_message.Message):
    __slots__ = ("sensors", "next_page_token")
    SENSORS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    sensors: _containers.RepeatedCompositeFieldContainer[_sensor_pb2.Sensor]
    next_page_token: str
    def __init__(self, sensors: _Optional[_Iterable[_Union[_sensor_pb2.Sensor, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class UpdateSensorRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "sensor_id", "definition", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SENSOR_ID_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    sensor_id: str
    definition: _sensor_pb2.SensorDefinition
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., sensor_id: _Optional[str] = ..., definition: _Optional[_Union[_sensor_pb2.SensorDefinition, _Mapping]] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class UpdateSensorResponse(_message.Message):
    __slots__ = ("sensor", "accepted_event_id")
    SENSOR_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    sensor: _sensor_pb2.Sensor
    accepted_event_id: str
    def __init__(self, sensor: _Optional[_Union[_sensor_pb2.Sensor, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class DeleteSensorRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "sensor_id", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SENSOR_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    sensor_id: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., sensor_id: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class DeleteSensorResponse(_message.Message):
    __slots__ = ("accepted_event_id",)
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    accepted_event_id: str
    def __init__(self, accepted_event_id: _Optional[str] = ...) -> None: ...

class PauseSensorRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "sensor_id", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SENSOR_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    sensor_id: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., sensor_id: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class PauseSensorResponse(_message.Message):
    __slots__ = ("sensor", "accepted_event_id")
    SENSOR_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    sensor: _sensor_pb2.Sensor
    accepted_event_id: str
    def __init__(self, sensor: _Optional[_Union[_sensor_pb2.Sensor, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class ResumeSensorRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "sensor_id", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SENSOR_ID_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    sensor_id: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., sensor_id: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class ResumeSensorResponse(_message.Message):
    __slots__ = ("sensor", "accepted_event_id")
    SENSOR_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    sensor: _sensor_pb2.Sensor
    accepted_event_id: str
    def __init__(self, sensor: _Optional[_Union[_sensor_pb2.Sensor, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class EvaluateSensorRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "sensor_id", "payload_json", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SENSOR_ID_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    sensor_id: str
    payload_json: str
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., sensor_id: _Optional[str] = ..., payload_json: _Optional[str] = ..., comment: _Optional[str] = ...) -> None: ...

class EvaluateSensorResponse(_message.Message):
    __slots__ = ("evaluation", "accepted_event_id")
    EVALUATION_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    evaluation: _sensor_pb2.Evaluation
    accepted_event_id: str
    def __init__(self, evaluation: _Optional[_Union[_sensor_pb2.Evaluation, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class ListEvaluationsRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "sensor_id", "page_size", "page_token", "filter")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    SENSOR_ID_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    FILTER_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    sensor_id: str
    page_size: int
    page_token: str
    filter: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., sensor_id: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., filter: _Optional[str] = ...) -> None: ...

class ListEvaluationsResponse(_message.Message):
    __slots__ = ("evaluations", "next_page_token")
    EVALUATIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    evaluations: _containers.RepeatedCompositeFieldContainer[_sensor_pb2.Evaluation]
    next_page_token: str
    def __init__(self, evaluations: _Optional[_Iterable[_Union[_sensor_pb2.Evaluation, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ResetCursorRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "request_id", "sensor_id", "cursor", "expected_version", "comment")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SENSOR_ID_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMMENT_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    request_id: str
    sensor_id: str
    cursor: str
    expected_version: int
    comment: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., request_id: _Optional[str] = ..., sensor_id: _Optional[str] = ..., cursor: _Optional[str] = ..., expected_version: _Optional[int] = ..., comment: _Optional[str] = ...) -> None: ...

class ResetCursorResponse(_message.Message):
    __slots__ = ("sensor", "accepted_event_id")
    SENSOR_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    sensor: _sensor_pb2.Sensor
    accepted_event_id: str
    def __init__(self, sensor: _Optional[_Union[_sensor_pb2.Sensor, _Mapping]] = ..., accepted_event_id: _Optional[str] = ...) -> None: ...

class DeliverWebhookRequest(_message.Message):
    __slots__ = ("tenant", "workspace", "sensor_id", "message_id", "signed_at", "signature", "payload", "content_type")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    SENSOR_ID_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_ID_FIELD_NUMBER: _ClassVar[int]
    SIGNED_AT_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    workspace: str
    sensor_id: str
    message_id: str
    signed_at: int
    signature: str
    payload: bytes
    content_type: str
    def __init__(self, tenant: _Optional[str] = ..., workspace: _Optional[str] = ..., sensor_id: _Optional[str] = ..., message_id: _Optional[str] = ..., signed_at: _Optional[int] = ..., signature: _Optional[str] = ..., payload: _Optional[bytes] = ..., content_type: _Optional[str] = ...) -> None: ...

class DeliverWebhookResponse(_message.Message):
    __slots__ = ("duplicate", "accepted_event_id")
    DUPLICATE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_EVENT_ID_FIELD_NUMBER: _ClassVar[int]
    duplicate: bool
    accepted_event_id: str
    def __init__(self, duplicate: bool = ..., accepted_event_id: _Optional[str] = ...) -> None: ...
