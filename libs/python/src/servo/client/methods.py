"""Properties of methods, read from the proto files: whether a repeat is safe, and whether the request has an id."""

from __future__ import annotations

import importlib
import os
import time
from functools import cache
from typing import NamedTuple

from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import Message

from servo.model.ids import ulid

_REQUEST_ID = "request_id"
_HARMLESS = (MethodOptions.NO_SIDE_EFFECTS, MethodOptions.IDEMPOTENT)


class Method(NamedTuple):
    idempotent: bool
    has_request_id: bool


@cache
def method(path: str) -> Method:
    """``path`` is such as ``/servo.v1.SchedulerService/GetRun``."""
    _, service, name = path.split("/")
    # The stub's module imports the messages, but not the file that describes the service.
    package, _, short = service.rpartition(".")
    importlib.import_module(f"{package}.{short.removesuffix('Service').lower()}_pb2")
    found = descriptor_pool.Default().FindServiceByName(service).methods_by_name[name]
    return Method(
        idempotent=found.GetOptions().idempotency_level in _HARMLESS,
        has_request_id=_REQUEST_ID in found.input_type.fields_by_name,
    )


def with_request_id(path: str, request: Message) -> tuple[Message, bool]:
    """The request, with an id if it takes one and has none; and whether repeating it is safe."""
    facts = method(path)
    if not facts.has_request_id:
        return request, facts.idempotent
    if not getattr(request, _REQUEST_ID):
        # A copy, because the caller may send the same message again as a new request.
        named = type(request)()
        named.CopyFrom(request)
        setattr(named, _REQUEST_ID, ulid(time.time_ns() // 1_000_000, os.urandom(10)))
        request = named
    return request, True
