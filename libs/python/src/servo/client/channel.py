"""What generated stubs call through: deadline, request id, repeats, exceptions. Synchronous."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, NoReturn, cast

import grpc

from .address import Address
from .errors import Details, failure
from .methods import with_request_id
from .patience import DEADLINE_SECONDS, Patience
from .status import is_unavailable, ran_out, told


def open_channel(address: Address) -> grpc.Channel:
    """Connects with the first call."""
    channel = grpc.secure_channel(address.target, address.credentials, address.options)
    return grpc.intercept_channel(channel, _Patient())


def closed_channel() -> grpc.Channel:
    """In place of one that was closed: gRPC may end the whole process when somebody calls through that."""
    return cast(grpc.Channel, _Closed())


class _Closed:
    def close(self) -> None:
        """A second time."""

    def __getattr__(self, _name: str) -> NoReturn:
        raise failure(Details("UNKNOWN", "the call cannot be made: the client is closed"))


class _Patient(grpc.UnaryUnaryClientInterceptor):
    def intercept_unary_unary(
        self, continuation: Callable[..., Any], details: grpc.ClientCallDetails, request: Any
    ) -> Any:
        request, harmless = with_request_id(str(details.method), request)
        seconds = DEADLINE_SECONDS if details.timeout is None else details.timeout
        patience = Patience(time.monotonic() + seconds)
        refusal: grpc.RpcError | None = None
        while True:
            outcome = continuation(_Details(details, patience.left(time.monotonic())), request)
            if not isinstance(outcome, grpc.RpcError):
                return outcome
            pause = patience.pause(time.monotonic(), random.random())
            if refusal is not None and ran_out(outcome):
                # Why it was repeated says more than that there was no time for another answer.
                raise told(refusal) from outcome
            if not harmless or not is_unavailable(outcome) or pause is None:
                raise told(outcome) from outcome
            refusal = outcome
            time.sleep(pause)
            patience = patience.again()


class _Details(grpc.ClientCallDetails):
    """The same call with what is left of its time."""

    def __init__(self, given: grpc.ClientCallDetails, timeout: float) -> None:
        self.method, self.metadata, self.credentials = given.method, given.metadata, given.credentials
        self.wait_for_ready, self.compression = given.wait_for_ready, given.compression
        self.timeout = timeout
