"""What generated stubs call through: deadline, request id, repeats, exceptions. Synchronous."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, NoReturn, cast

import grpc

from .address import Address
from .backoff import DEADLINE_SECONDS, Backoff
from .errors import Details, failure
from .methods import with_request_id
from .status import call_failed, deadline_exceeded, is_unavailable


def open_channel(address: Address) -> grpc.Channel:
    """Connects with the first call."""
    channel = grpc.secure_channel(address.target, address.credentials, address.options)
    return grpc.intercept_channel(channel, _RetryInterceptor())


def closed_channel() -> grpc.Channel:
    """In place of one that was closed: gRPC may end the whole process when somebody calls through that."""
    return cast(grpc.Channel, _Closed())


class _Closed:
    def close(self) -> None:
        """A second time."""

    def __getattr__(self, _name: str) -> NoReturn:
        raise failure(Details("UNKNOWN", "the call cannot be made: the client is closed"))


class _RetryInterceptor(grpc.UnaryUnaryClientInterceptor):
    def intercept_unary_unary(
        self, continuation: Callable[..., Any], details: grpc.ClientCallDetails, request: Any
    ) -> Any:
        request, harmless = with_request_id(str(details.method), request)
        seconds = DEADLINE_SECONDS if details.timeout is None else details.timeout
        backoff = Backoff(time.monotonic() + seconds)
        refusal: grpc.RpcError | None = None
        while True:
            outcome = continuation(_Details(details, backoff.left(time.monotonic())), request)
            if not isinstance(outcome, grpc.RpcError):
                return outcome
            pause = backoff.pause(time.monotonic(), random.random())
            if refusal is not None and deadline_exceeded(outcome):
                # Why it was repeated says more than that there was no time for another answer.
                raise call_failed(refusal) from outcome
            if not harmless or not is_unavailable(outcome) or pause is None:
                raise call_failed(outcome) from outcome
            refusal = outcome
            time.sleep(pause)
            backoff = backoff.again()


class _Details(grpc.ClientCallDetails):
    """The same call with what is left of its time."""

    def __init__(self, given: grpc.ClientCallDetails, timeout: float) -> None:
        self.method, self.metadata, self.credentials = given.method, given.metadata, given.credentials
        self.wait_for_ready, self.compression = given.wait_for_ready, given.compression
        self.timeout = timeout
