"""Registering, pulling with credits, and leaving."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import random
import socket
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

import servo
from servo.client.aio import AsyncClient
from servo.client.errors import CallFailed, InvalidRequest, NotAllowed, NotAuthenticated, NotImplementedByServer
from servo.client.status import told
from servo.errors import ServoError
from servo.model.ids import ulid
from servo.v1 import dispatcher_pb2, worker_pb2

from . import orphans
from .attempt import Attempt
from .children import Children
from .code import CodeCache
from .envelopes import Seen, open_envelope
from .reports import Reports
from .spool import Spool

_log = logging.getLogger("servo.worker")
_PAUSE_MIN = 0.05
_PAUSE_MAX = 2.0
# A sign of life on a silent stream.
_ALIVE_EVERY = 10.0
_RENEW_AHEAD = 60.0
_ANSWERS_SECONDS = 10.0
# What repeating cannot help.
_FINAL = (NotAuthenticated, NotAllowed, InvalidRequest, NotImplementedByServer)


class FolderTaken(ServoError):
    """Another worker keeps its outcomes there."""


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    tenant: str
    # Code, and outcomes that the server has not answered.
    folder: Path
    slots: int = 2
    name: str = field(default_factory=socket.gethostname)
    workspaces: Sequence[str] = ()
    capabilities: Sequence[str] = ()
    pools: Sequence[str] = ()
    # How long attempts may take to end when the worker is told to leave, and user code after TERM.
    leave_grace: float = 30.0
    kill_grace: float = 5.0

    @property
    def info(self) -> worker_pb2.WorkerInfo:
        return worker_pb2.WorkerInfo(
            name=self.name,
            workspaces=self.workspaces,
            slots=self.slots,
            capabilities=self.capabilities,
            pools=self.pools,
            version=servo.__version__,
        )


class Worker:
    def __init__(self, client: AsyncClient, config: WorkerConfig) -> None:
        self._client, self._config = client, config
        self._worker_id, self._session = _new_id(), _new_id()
        self._code = CodeCache(config.folder / "code", self._download)
        self._children = Children(config.slots)
        self._reports = Reports(client, config.tenant, Spool(config.folder / "outcomes"))
        self._running: dict[str, tuple[Attempt, asyncio.Task[None]]] = {}
        self._seen = Seen()
        self._envelope_key = b""
        self._leave = asyncio.Event()
        self._says: list[dispatcher_pb2.PullTasksRequest] = []
        # Granted and not said yet: while one message is under way they add up.
        self._credits = 0
        self._word = asyncio.Event()

    def leave(self) -> None:
        """Take nothing more, finish what runs within the grace, give the rest back."""
        self._leave.set()

    async def run(self) -> None:
        """Until it is told to leave. Raises when the server refuses the worker for good, or its folder is taken."""
        (self._config.folder / "code").mkdir(parents=True, exist_ok=True)
        orphans.adopt()
        with _alone_in(self._config.folder):
            await self._work()

    async def _work(self) -> None:
        reporting = asyncio.create_task(self._reports.run())
        try:
            await self._serve_again_and_again()
            await self._finish_running()
            if not await self._reports.all_answered(_ANSWERS_SECONDS):
                _log.warning("outcomes without an answer stay in %s", self._config.folder)
        finally:
            reporting.cancel()
            await self._children.close()

    async def _serve_again_and_again(self) -> None:
        pause = _PAUSE_MIN
        while not self._leave.is_set():
            began = time.monotonic()
            try:
                await self._serve()
            except _FINAL:
                raise
            except CallFailed as error:
                _log.info("the stream of envelopes broke: %s", error)
            pause = _PAUSE_MIN if time.monotonic() - began > _PAUSE_MAX else min(pause * 2, _PAUSE_MAX)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._leave.wait(), pause * random.uniform(0.5, 1.0))

    async def _serve(self) -> None:
        """Registers, opens a stream and works until it ends."""
        registered = await self._register()
        client = self._client.at(registered.address) if registered.address else self._client
        self._says, self._credits = [], 0
        self._say(
            open=dispatcher_pb2.PullOpen(
                session=self._session,
                attempt_ids=list(self._running),
                credits=max(self._config.slots - len(self._running), 0),
            )
        )
        call = client.dispatcher.PullTasks(self._messages())
        hearing = asyncio.create_task(self._hear_all(call))
        leaving = asyncio.create_task(self._say_leave())
        beside = [asyncio.create_task(self._renew(registered)), asyncio.create_task(self._show_life())]
        try:
            await asyncio.wait([hearing, leaving], return_when=asyncio.FIRST_COMPLETED)
            if leaving.done():
                # The server ends the stream when it has noted that we are gone.
                await asyncio.wait([hearing], timeout=_PAUSE_MAX)
            elif hearing.exception() is not None:
                await hearing
        finally:
            call.cancel()
            for task in (hearing, leaving, *beside):
                task.cancel()
            await asyncio.gather(hearing, leaving, *beside, return_exceptions=True)

    async def _register(self) -> dispatcher_pb2.RegisterWorkerResponse:
        request = dispatcher_pb2.RegisterWorkerRequest(
            tenant=self._config.tenant, worker_id=self._worker_id, session=self._session, info=self._config.info
        )
        registered = await self._client.dispatcher.RegisterWorker(request)
        self._envelope_key = registered.envelope_key
        return registered

    async def _renew(self, registered: dispatcher_pb2.RegisterWorkerResponse) -> None:
        """Registers again before the key of its envelopes is too old; what fails shows on the stream."""
        while registered.HasField("renew_before"):
            left = registered.renew_before.seconds - time.time() - _RENEW_AHEAD
            await asyncio.sleep(max(left, _PAUSE_MAX))
            try:
                registered = await self._register()
            except CallFailed as error:
                _log.info("the registration could not be renewed: %s", error)

    async def _hear_all(self, call: AsyncIterable[dispatcher_pb2.PullTasksResponse]) -> None:
        try:
            async for message in call:
                if not self._hear(message):
                    return
        except grpc.aio.AioRpcError as error:
            raise told(error) from error

    def _hear(self, message: dispatcher_pb2.PullTasksResponse) -> bool:
        """Whether the stream goes on."""
        match message.WhichOneof("message"):
            case "envelopes":
                refused = sum(not self._start(signed) for signed in message.envelopes.envelopes)
                self._grant(refused)
            case "cancels":
                for attempt_id in message.cancels.attempt_ids:
                    if attempt_id in self._running:
                        self._running[attempt_id][0].cancel()
            case "drain":
                if message.drain.kill:
                    self._interrupt_all()
                self._leave.set()
            case "moved":
                return False
        return True

    def _start(self, signed: worker_pb2.SignedEnvelope) -> bool:
        envelope = open_envelope(self._envelope_key, signed)
        if envelope is None:
            _log.warning("an envelope has a wrong signature and is not run")
            return False
        if not self._seen.is_new(envelope.attempt_id):
            return False
        attempt = Attempt(
            envelope,
            worker_id=self._worker_id,
            session=self._session,
            code=self._code,
            children=self._children,
            reports=self._reports,
            kill_grace=self._config.kill_grace,
        )
        task = asyncio.create_task(self._run(attempt))
        self._running[envelope.attempt_id] = attempt, task
        return True

    async def _run(self, attempt: Attempt) -> None:
        try:
            await attempt.run()
        except Exception:
            # The server will miss its heartbeat and try it elsewhere.
            _log.exception("attempt %s could not be carried out", attempt.envelope.attempt_id)
        finally:
            del self._running[attempt.envelope.attempt_id]
            self._grant(1)

    async def _finish_running(self) -> None:
        tasks = [task for _, task in self._running.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=self._config.leave_grace)
        self._interrupt_all()
        await asyncio.gather(*(task for _, task in self._running.values()))

    def _interrupt_all(self) -> None:
        for attempt, _ in self._running.values():
            attempt.interrupt()

    async def _messages(self) -> AsyncIterator[dispatcher_pb2.PullTasksRequest]:
        while True:
            await self._word.wait()
            self._word.clear()
            said, self._says = self._says, []
            for message in said:
                yield message
            if self._credits:
                count, self._credits = self._credits, 0
                yield self._message(credits=dispatcher_pb2.PullCredits(count=count))

    async def _show_life(self) -> None:
        while True:
            await asyncio.sleep(_ALIVE_EVERY)
            self._say(credits=dispatcher_pb2.PullCredits(count=0))

    async def _say_leave(self) -> None:
        """Tells the server to send nothing more; cancels are still heard while the rest ends."""
        await self._leave.wait()
        self._say(leave=dispatcher_pb2.PullLeave(comment="the process ends"))
        await self._finish_running()

    def _grant(self, count: int) -> None:
        if count > 0 and not self._leave.is_set():
            self._credits += count
            self._word.set()

    def _say(self, **message: Any) -> None:
        self._says.append(self._message(**message))
        self._word.set()

    def _message(self, **message: Any) -> dispatcher_pb2.PullTasksRequest:
        return dispatcher_pb2.PullTasksRequest(tenant=self._config.tenant, worker_id=self._worker_id, **message)

    async def _download(self, workspace: str, digest: str) -> bytes:
        return await self._client.in_workspace(workspace).download(digest)


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Two processes would send, and forget, each other's outcomes."""
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise FolderTaken(f"{folder} belongs to a worker that runs; give this one another with --state") from None
    finally:
        os.close(lock)


def _new_id() -> str:
    return ulid(time.time_ns() // 1_000_000, os.urandom(10))
