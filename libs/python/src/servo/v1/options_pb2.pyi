from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor
ACCESS_FIELD_NUMBER: _ClassVar[int]
access: _descriptor.FieldDescriptor

class Access(_message.Message):
    __slots__ = ("permission", "callers", "attempt_signature", "open", "confined")
    PERMISSION_FIELD_NUMBER: _ClassVar[int]
    CALLERS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    CONFINED_FIELD_NUMBER: _ClassVar[int]
    permission: str
    callers: Callers
    attempt_signature: bool
    open: bool
    confined: bool
    def __init__(self, permission: _Optional[str] = ..., callers: _Optional[_Union[Callers, _Mapping]] = ..., attempt_signature: bool = ..., open: bool = ..., confined: bool = ...) -> None: ...

class Callers(_message.Message):
    __slots__ = ("services",)
    SERVICES_FIELD_NUMBER: _ClassVar[int]
    services: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, services: _Optional[_Iterable[str]] = ...) -> None: ...
