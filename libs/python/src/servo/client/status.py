"""Translates a gRPC status into an exception."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from .errors import CallFailed, Details, Violation, failure

# How gRPC reports a failing token source; the status alone looks like an unreachable server.
_NO_TOKEN = "Getting metadata from plugin failed with error: "
_DETAILS = "grpc-status-details-bin"
_DOMAIN = "servo"


def call_failed(error: grpc.RpcError | grpc.aio.AioRpcError) -> CallFailed:
    """The exception for a failed call."""
    if not isinstance(error, grpc.Call | grpc.aio.AioRpcError):
        return failure(Details("UNKNOWN", str(error)))
    trailing: Iterable[tuple[str, str | bytes]] = error.trailing_metadata() or ()
    code = error.code()
    name = code.name if isinstance(code, grpc.StatusCode) else "UNKNOWN"
    if _has_no_token(error):
        why = (error.details() or "").removeprefix(_NO_TOKEN)
        return failure(Details("UNAUTHENTICATED", f"there is no token for this call: {why}"))
    return failure(_details(name, error.details() or name, dict(trailing).get(_DETAILS)))


def is_unavailable(error: grpc.RpcError | grpc.aio.AioRpcError) -> bool:
    if not isinstance(error, grpc.Call | grpc.aio.AioRpcError) or _has_no_token(error):
        return False
    return error.code() is grpc.StatusCode.UNAVAILABLE


def deadline_exceeded(error: grpc.RpcError | grpc.aio.AioRpcError) -> bool:
    """Whether the deadline passed before a response came."""
    return isinstance(error, grpc.Call | grpc.aio.AioRpcError) and error.code() is grpc.StatusCode.DEADLINE_EXCEEDED


def _has_no_token(error: grpc.Call | grpc.aio.AioRpcError) -> bool:
    return (error.details() or "").startswith(_NO_TOKEN)


def _details(code: str, message: str, raw: object) -> Details:
    info, bad, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), error_details_pb2.RetryInfo()
    for each in _parts(raw):
        for wanted in (info, bad, retry):
            each.Unpack(wanted)
    if info.domain != _DOMAIN and code == "UNAVAILABLE":
        message = f"the server cannot be reached: {message}"
    if info.domain != _DOMAIN and code == "DEADLINE_EXCEEDED":
        message = "no answer came in time"
    return Details(
        code=code,
        message=message,
        reason=info.reason if info.domain == _DOMAIN else "",
        violations=[Violation(each.field, each.description) for each in bad.field_violations],
        retry_after=timedelta(seconds=retry.retry_delay.seconds, microseconds=retry.retry_delay.nanos // 1000)
        if retry.HasField("retry_delay")
        else None,
        metadata=dict(info.metadata),
    )


def _parts(raw: object) -> list[AnyMessage]:
    if not isinstance(raw, bytes):
        return []
    try:
        return list(status_pb2.Status.FromString(raw).details)
    except DecodeError:
        return []
