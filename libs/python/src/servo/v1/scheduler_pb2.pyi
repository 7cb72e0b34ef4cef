from google.api import annotations_pb2 as _annotations_pb2
from servo.v1 import options_pb2 as _options_pb2
from servo.v1 import scheduler_data_pb2 as _scheduler_data_pb2
from servo.v1 import scheduler_runs_pb2 as _scheduler_runs_pb2
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor
