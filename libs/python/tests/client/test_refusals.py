"""Errors of calls that are refused, retried, and then time out."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent import futures

import grpc
import pytest

from servo.client import aio
from servo.client.address import Address
from servo.client.channel import open_channel
from servo.client.errors import TimedOut, Unavailable
from servo.v1 import scheduler_pb2_grpc, scheduler_runs_pb2

REFUSAL = "Postgres is unavailable; try again in a moment"
# Longer than a refusal and a pause; the whole waiting time of the test.
SECONDS = 1.0


class _Local(Address):
    @property
    def credentials(self) -> grpc.ChannelCredentials:
        return grpc.local_channel_credentials()


class _Scheduler:
    """Refuses the first calls and does not answer the others."""

    def __init__(self) -> None:
        self.refuse = 0
        self.over = threading.Event()

    def answer(self, _request: bytes, context: grpc.ServicerContext) -> bytes:
        if self.refuse > 0:
            self.refuse -= 1
            context.abort(grpc.StatusCode.UNAVAILABLE, REFUSAL)
        self.over.wait()
        return b""


@pytest.fixture
def scheduler() -> _Scheduler:
    return _Scheduler()


@pytest.fixture
def address(scheduler: _Scheduler) -> Iterator[Address]:
    server = grpc.server(futures.ThreadPoolExecutor(4))
    methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        "GetRun": grpc.unary_unary_rpc_method_handler(scheduler.answer)
    }
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("servo.v1.SchedulerService", methods)])
    port = server.add_secure_port("127.0.0.1:0", grpc.local_server_credentials())
    server.start()
    yield _Local(f"https://127.0.0.1:{port}")
    scheduler.over.set()
    server.stop(None).wait()


def _ask(address: Address) -> None:
    with open_channel(address) as channel:
        stub = scheduler_pb2_grpc.SchedulerServiceStub(channel)
        stub.GetRun(scheduler_runs_pb2.GetRunRequest(run_id="x"), timeout=SECONDS)


async def _ask_aio(address: Address) -> None:
    patient = [aio._RetryInterceptor()]
    async with grpc.aio.secure_channel(address.target, address.credentials, interceptors=patient) as channel:
        stub = scheduler_pb2_grpc.SchedulerServiceStub(channel)
        await stub.GetRun(scheduler_runs_pb2.GetRunRequest(run_id="x"), timeout=SECONDS)


def _ask_in_a_loop(address: Address) -> None:
    asyncio.run(_ask_aio(address))


@pytest.mark.parametrize("ask", [_ask, _ask_in_a_loop])
def test_timeout_after_retries_raises_the_reason_of_the_retries(
    ask: Callable[[Address], None], scheduler: _Scheduler, address: Address
) -> None:
    scheduler.refuse = 1
    with pytest.raises(Unavailable, match=REFUSAL):
        ask(address)
    with pytest.raises(TimedOut, match="no answer came in time"):
        ask(address)
