from servo.v1 import partition_pb2 as _partition_pb2
from servo.v1 import state_pb2 as _state_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RunSpec(_message.Message):
    __slots__ = ("selection", "partitions", "operation", "deployment_id", "labels", "config_json", "priority", "skip_up_to_date", "sensor")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SELECTION_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    DEPLOYMENT_ID_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    SKIP_UP_TO_DATE_FIELD_NUMBER: _ClassVar[int]
    SENSOR_FIELD_NUMBER: _ClassVar[int]
    selection: _containers.RepeatedScalarFieldContainer[str]
    partitions: _partition_pb2.PartitionSelection
    operation: _state_pb2.Operation
    deployment_id: str
    labels: _containers.ScalarMap[str, str]
    config_json: str
    priority: int
    skip_up_to_date: bool
    sensor: SensorPoll
    def __init__(self, selection: _Optional[_Iterable[str]] = ..., partitions: _Optional[_Union[_partition_pb2.PartitionSelection, _Mapping]] = ..., operation: _Optional[_Union[_state_pb2.Operation, str]] = ..., deployment_id: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., config_json: _Optional[str] = ..., priority: _Optional[int] = ..., skip_up_to_date: bool = ..., sensor: _Optional[_Union[SensorPoll, _Mapping]] = ...) -> None: ...

class SensorPoll(_message.Message):
    __slots__ = ("sensor_id", "definition_version", "cursor", "poll_epoch")
    SENSOR_ID_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_VERSION_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    POLL_EPOCH_FIELD_NUMBER: _ClassVar[int]
    sensor_id: str
    definition_version: int
    cursor: str
    poll_epoch: int
    def __init__(self, sensor_id: _Optional[str] = ..., definition_version: _Optional[int] = ..., cursor: _Optional[str] = ..., poll_epoch: _Optional[int] = ...) -> None: ...
