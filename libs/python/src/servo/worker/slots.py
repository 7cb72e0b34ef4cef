"""The attempts of a worker, pulled or pushed."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from enum import Enum

from servo.client.aio import AsyncClient
from servo.client.errors import CallFailed
from servo.model.ids import ulid
from servo.v1 import dispatcher_pb2, worker_pb2

from .attempt import Attempt
from .children import Children
from .code import CodeCache
from .config import WorkerConfig
from .envelopes import SeenAttempts, open_envelope
from .environments import Environments
from .reports import Reports
from .secrets import Secrets
from .shutdown import Shutdown
from .spool import Spool

_log = logging.getLogger("servo.worker")
_RENEW_AHEAD = 60.0
_RENEW_PAUSE_MIN = 2.0


class Acceptance(Enum):
    STARTED = 1
    # The envelope came before.
    KNOWN = 2
    # It was not signed for this worker.
    FORGED = 3
    # There is no free slot.
    FULL = 4


class Slots:
    def __init__(self, client: AsyncClient, config: WorkerConfig) -> None:
        self.client, self.config = client, config
        self.worker_id, self.session = _new_id(), _new_id()
        self.shutdown = Shutdown(config.drain_grace, config.kill_grace)
        self.running: dict[str, tuple[Attempt, asyncio.Task[None]]] = {}
        self.reports = Reports(client, config.tenant, Spool(config.folder / "outcomes"))
        self._code = CodeCache(config.folder / "code", self._download)
        self._environments = Environments(config.folder / "environments")
        self._secrets = Secrets()
        self._children = Children(config.slots)
        self._seen = SeenAttempts()
        self._envelope_key = b""

    async def register(self) -> dispatcher_pb2.RegisterWorkerResponse:
        config = self.config
        request = dispatcher_pb2.RegisterWorkerRequest(
            tenant=config.tenant, worker_id=self.worker_id, session=self.session, info=config.info
        )
        registered = await self.client.dispatcher.RegisterWorker(request)
        self._envelope_key = registered.envelope_key
        return registered

    async def stay_registered(self, registered: dispatcher_pb2.RegisterWorkerResponse) -> None:
        """Registers again before the key of its envelopes expires; a failure surfaces in the source of envelopes."""
        while registered.HasField("renew_before"):
            left = registered.renew_before.seconds - time.time() - _RENEW_AHEAD
            await asyncio.sleep(max(left, _RENEW_PAUSE_MIN))
            try:
                registered = await self.register()
            except CallFailed as error:
                _log.info("the registration could not be renewed: %s", error)

    def accept(
        self,
        signed: worker_pb2.SignedEnvelope,
        run_attempt: Callable[[Attempt], Awaitable[None]] = Attempt.run,
        ended: Callable[[], None] = lambda: None,
        *,
        only_if_free: bool = False,
    ) -> Acceptance:
        """Starts the attempt of a new envelope for this worker; ``ended`` is called when its slot
        is free again. A pulled envelope is accepted without a free slot, because it is assigned to
        this worker; a pushed one can be pushed again later.
        """
        envelope = open_envelope(self._envelope_key, signed)
        if envelope is None:
            _log.warning("an envelope has a wrong signature and is not run")
            return Acceptance.FORGED
        if only_if_free and len(self.running) >= self.config.slots and envelope.attempt_id not in self.running:
            return Acceptance.FULL
        if not self._seen.is_new(envelope.attempt_id):
            return Acceptance.KNOWN
        attempt = Attempt(
            envelope,
            worker_id=self.worker_id,
            session=self.session,
            code=self._code,
            environments=self._environments,
            secrets=self._secrets,
            children=self._children,
            reports=self.reports,
            kill_grace=self.config.kill_grace,
        )
        task = asyncio.create_task(self._run(attempt, run_attempt, ended))
        self.running[envelope.attempt_id] = attempt, task
        return Acceptance.STARTED

    def cancel(self, attempt_id: str) -> None:
        if attempt_id in self.running:
            self.running[attempt_id][0].cancel()

    def interrupt_all(self) -> None:
        for attempt, _ in self.running.values():
            attempt.interrupt(self.shutdown.kill_seconds)

    async def finish_running(self) -> None:
        """Attempts that do not finish in time are returned."""
        await self._ended_within(self.shutdown.seconds_to_finish)
        self.interrupt_all()
        await self._ended_within(self.shutdown.seconds_to_kill)

    async def _ended_within(self, seconds: float) -> None:
        tasks = [task for _, task in self.running.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def all_answered(self) -> None:
        if not await self.reports.all_answered(self.shutdown.seconds_left):
            _log.warning("unanswered outcomes stay in %s", self.config.folder)

    async def close(self) -> None:
        await self._environments.close()
        await self._children.close()

    async def _run(
        self, attempt: Attempt, run_attempt: Callable[[Attempt], Awaitable[None]], ended: Callable[[], None]
    ) -> None:
        try:
            await run_attempt(attempt)
        except Exception:
            # The server notices the missing heartbeats and retries the task elsewhere.
            _log.exception("attempt %s could not be carried out", attempt.envelope.attempt_id)
        finally:
            del self.running[attempt.envelope.attempt_id]
            ended()

    async def _download(self, workspace: str, digest: str) -> bytes:
        return await self.client.in_workspace(workspace).download(digest)


def _new_id() -> str:
    return ulid(time.time_ns() // 1_000_000, os.urandom(10))
