"""Envelopes over a stream, as many as there are free slots."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import AsyncIterable, AsyncIterator
from functools import partial
from typing import Any

import grpc

from servo.client.errors import CallFailed, InvalidRequest, NotAllowed, NotAuthenticated, NotImplementedByServer
from servo.client.status import call_failed
from servo.v1 import dispatcher_pb2

from .slots import Acceptance, Slots

_log = logging.getLogger("servo.worker")
_PAUSE_MIN = 0.05
_PAUSE_MAX = 2.0
# Seconds between keep-alives on a silent stream.
_ALIVE_EVERY = 10.0
# Errors that a retry cannot fix.
FINAL = (NotAuthenticated, NotAllowed, InvalidRequest, NotImplementedByServer)


class Pull:
    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._outgoing: list[dispatcher_pb2.PullTasksRequest] = []
        # Credits that are granted but not sent; they add up while a message is in flight.
        self._credits = 0
        self._wake = asyncio.Event()
        # The number of the current stream, because the generator of a broken stream may still wait
        # and must not take the messages of the next one.
        self._stream = 0

    async def serve(self) -> None:
        """Runs until the worker shuts down. Raises if the server refuses it for good."""
        pause = _PAUSE_MIN
        while not self._slots.shutdown.begun:
            began = time.monotonic()
            try:
                await self._serve_once()
            except FINAL:
                raise
            except CallFailed as error:
                _log.info("the stream of envelopes broke: %s", error)
            pause = _PAUSE_MIN if time.monotonic() - began > _PAUSE_MAX else min(pause * 2, _PAUSE_MAX)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._slots.shutdown.wait(), pause * random.uniform(0.5, 1.0))

    async def _serve_once(self) -> None:
        """Registers, opens a stream and works until the stream ends."""
        slots = self._slots
        registered = await slots.register()
        client = slots.client.at(registered.address) if registered.address else slots.client
        self._outgoing, self._credits = [], 0
        self._stream += 1
        self._enqueue(
            open=dispatcher_pb2.PullOpen(
                session=slots.session,
                attempt_ids=list(slots.running),
                credits=max(slots.config.slots - len(slots.running), 0),
            )
        )
        call = client.dispatcher.PullTasks(self._messages(self._stream))
        receiving = asyncio.create_task(self._receive_all(call))
        shutdown = asyncio.create_task(self._send_drain())
        background = [
            asyncio.create_task(slots.stay_registered(registered)),
            asyncio.create_task(self._send_keepalives()),
        ]
        try:
            await asyncio.wait([receiving, shutdown], return_when=asyncio.FIRST_COMPLETED)
            if shutdown.done():
                # The server ends the stream once it has recorded that the worker is gone.
                await asyncio.wait([receiving], timeout=min(_PAUSE_MAX, slots.shutdown.seconds_left))
            elif receiving.exception() is not None:
                await receiving
        finally:
            self._stream += 1
            call.cancel()
            for task in (receiving, shutdown, *background):
                task.cancel()
            await asyncio.gather(receiving, shutdown, *background, return_exceptions=True)

    async def _receive_all(self, call: AsyncIterable[dispatcher_pb2.PullTasksResponse]) -> None:
        try:
            async for message in call:
                if not self._receive(message):
                    return
        except grpc.aio.AioRpcError as error:
            raise call_failed(error) from error

    def _receive(self, message: dispatcher_pb2.PullTasksResponse) -> bool:
        """Whether the stream continues."""
        match message.WhichOneof("message"):
            case "envelopes":
                accept = partial(self._slots.accept, ended=partial(self._grant, 1))
                refused = sum(accept(signed) is not Acceptance.STARTED for signed in message.envelopes.envelopes)
                self._grant(refused)
            case "cancels":
                for attempt_id in message.cancels.attempt_ids:
                    self._slots.cancel(attempt_id)
            case "drain":
                if message.drain.kill:
                    self._slots.interrupt_all()
                self._slots.shutdown.begin()
            case "moved":
                return False
        return True

    async def _messages(self, stream: int) -> AsyncIterator[dispatcher_pb2.PullTasksRequest]:
        while True:
            await self._wake.wait()
            if stream != self._stream:
                return
            self._wake.clear()
            messages, self._outgoing = self._outgoing, []
            for message in messages:
                yield message
            if self._credits:
                count, self._credits = self._credits, 0
                yield self._message(credits=dispatcher_pb2.PullCredits(count=count))

    async def _send_keepalives(self) -> None:
        while True:
            await asyncio.sleep(_ALIVE_EVERY)
            self._enqueue(credits=dispatcher_pb2.PullCredits(count=0))

    async def _send_drain(self) -> None:
        """Asks the server to send no more envelopes; cancellations still arrive while attempts finish."""
        await self._slots.shutdown.wait()
        self._enqueue(leave=dispatcher_pb2.PullLeave(comment="the process ends"))
        await self._slots.finish_running()

    def _grant(self, count: int) -> None:
        if count > 0 and not self._slots.shutdown.begun:
            self._credits += count
            self._wake.set()

    def _enqueue(self, **message: Any) -> None:
        self._outgoing.append(self._message(**message))
        self._wake.set()

    def _message(self, **message: Any) -> dispatcher_pb2.PullTasksRequest:
        slots = self._slots
        return dispatcher_pb2.PullTasksRequest(tenant=slots.config.tenant, worker_id=slots.worker_id, **message)
