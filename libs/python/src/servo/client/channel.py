"""The synchronous channel of the generated stubs: deadlines, request ids, retries, exceptions."""

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
    """Connects on the first call."""
    channel = grpc.secure_channel(address.target, address.credentials, address.options)
    return grpc.intercept_channel(channel, _RetryInterceptor())


def closed_channel() -> grpc.Channel:
    """Replaces a closed channel, because gRPC may abort the process when a closed channel is used."""
    return cast(grpc.Channel, _Closed())


class _Closed:
    def close(self) -> None:
        """Does nothing when called again."""

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
                # The reason for the retry is more useful than the timeout of the last try.
                raise call_failed(refusal) from outcome
            if not harmless or not is_unavailable(outcome) or pause is None:
                raise call_failed(outcome) from outcome
            refusal = outcome
            time.sleep(pause)
            backoff = backoff.again()


class _Details(grpc.ClientCallDetails):
    """The details of a call with its remaining time."""

    def __init__(self, given: grpc.ClientCallDetails, timeout: float) -> None:
        self.method, self.metadata, self.credentials = given.method, given.metadata, given.credentials
        self.wait_for_ready, self.compression = given.wait_for_ready, given.compression
        self.timeout = timeout
