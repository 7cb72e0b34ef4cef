from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ArtifactKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ARTIFACT_KIND_UNSPECIFIED: _ClassVar[ArtifactKind]
    ARTIFACT_KIND_SOURCE_ARCHIVE: _ClassVar[ArtifactKind]
    ARTIFACT_KIND_CONTAINER_IMAGE: _ClassVar[ArtifactKind]
    ARTIFACT_KIND_MANIFEST: _ClassVar[ArtifactKind]
ARTIFACT_KIND_UNSPECIFIED: ArtifactKind
ARTIFACT_KIND_SOURCE_ARCHIVE: ArtifactKind
ARTIFACT_KIND_CONTAINER_IMAGE: ArtifactKind
ARTIFACT_KIND_MANIFEST: ArtifactKind

class CodeArtifact(_message.Message):
    __slots__ = ("digest", "kind", "uri", "requirements_digest")
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    URI_FIELD_NUMBER: _ClassVar[int]
    REQUIREMENTS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    digest: str
    kind: ArtifactKind
    uri: str
    requirements_digest: str
    def __init__(self, digest: _Optional[str] = ..., kind: _Optional[_Union[ArtifactKind, str]] = ..., uri: _Optional[str] = ..., requirements_digest: _Optional[str] = ...) -> None: ...

class CodeRef(_message.Message):
    __slots__ = ("artifact_digest", "entry_point", "handler")
    ARTIFACT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    ENTRY_POINT_FIELD_NUMBER: _ClassVar[int]
    HANDLER_FIELD_NUMBER: _ClassVar[int]
    artifact_digest: str
    entry_point: EntryPoint
    handler: Handler
    def __init__(self, artifact_digest: _Optional[str] = ..., entry_point: _Optional[_Union[EntryPoint, _Mapping]] = ..., handler: _Optional[_Union[Handler, _Mapping]] = ...) -> None: ...

class EntryPoint(_message.Message):
    __slots__ = ("module", "function")
    MODULE_FIELD_NUMBER: _ClassVar[int]
    FUNCTION_FIELD_NUMBER: _ClassVar[int]
    module: str
    function: str
    def __init__(self, module: _Optional[str] = ..., function: _Optional[str] = ...) -> None: ...

class Handler(_message.Message):
    __slots__ = ("name", "config_json")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CONFIG_JSON_FIELD_NUMBER: _ClassVar[int]
    name: str
    config_json: str
    def __init__(self, name: _Optional[str] = ..., config_json: _Optional[str] = ...) -> None: ...
