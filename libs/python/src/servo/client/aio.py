"""The asynchronous client: the methods of :class:`~servo.client.sync.Client`, awaited or iterated with ``async``."""

from __future__ import annotations

import asyncio
import copy
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import grpc

from servo.define.run import Run
from servo.v1 import (
    access_pb2_grpc,
    automation_pb2_grpc,
    backfill_pb2_grpc,
    callback_pb2,
    callback_pb2_grpc,
    deployment_pb2,
    dispatcher_pb2_grpc,
    manifest_pb2,
    materialization_pb2,
    planner_pb2,
    planner_pb2_grpc,
    quota_pb2_grpc,
    run_pb2,
    scheduler_pb2_grpc,
    scheduler_runs_pb2,
    system_pb2_grpc,
    worker_pb2,
)

from .address import STUBS, Address, read_authority
from .backoff import DEADLINE_SECONDS, Backoff
from .errors import CallFailed, InvalidRequest
from .manifest_faults import are_truncated, with_all_faults
from .methods import with_request_id
from .pages import async_pages
from .requests import Requests, large_manifest
from .status import call_failed, deadline_exceeded, is_unavailable
from .sync import FIRST_TRIES, PAUSE_MAX, PAUSE_MIN, TERMINAL, LogLevel, RunKeyPolicy

_PAGE_SIZE = 100


class _RetryInterceptor(grpc.aio.UnaryUnaryClientInterceptor):
    async def intercept_unary_unary(
        self, continuation: Callable[..., Any], details: grpc.aio.ClientCallDetails, request: Any
    ) -> Any:
        method = details.method.decode() if isinstance(details.method, bytes) else details.method
        request, harmless = with_request_id(method, request)
        seconds = DEADLINE_SECONDS if details.timeout is None else details.timeout
        backoff = Backoff(time.monotonic() + seconds)
        refusal: grpc.aio.AioRpcError | None = None
        while True:
            left = grpc.aio.ClientCallDetails(
                method=details.method,
                timeout=backoff.left(time.monotonic()),
                metadata=details.metadata,
                credentials=details.credentials,
                wait_for_ready=details.wait_for_ready,
            )
            call = await continuation(left, request)
            try:
                return await call
            except grpc.aio.AioRpcError as error:
                pause = backoff.pause(time.monotonic(), random.random())
                if refusal is not None and deadline_exceeded(error):
                    # The reason for the retry is more useful than the timeout of the last try.
                    raise call_failed(refusal) from error
                if not harmless or not is_unavailable(error) or pause is None:
                    raise call_failed(error) from error
                refusal = error
            await asyncio.sleep(pause)
            backoff = backoff.again()


class AsyncClient:
    def __init__(
        self,
        url: str,
        *,
        api_key: str = "",
        token: Callable[[], str] | Path | None = None,
        tenant: str,
        workspace: str,
        ca_file: str | Path | None = None,
        server_name: str = "",
    ) -> None:
        self.tenant, self.workspace = tenant, workspace
        self._requests = Requests(tenant, workspace)
        self._address = Address(url, api_key, read_authority(ca_file), server_name, token)

    def in_workspace(self, workspace: str) -> AsyncClient:
        """The same caller and connection, in another workspace."""
        other = copy.copy(self)
        # Set before the copy would open a channel of its own.
        other.__dict__["_channel"] = self._channel
        other.workspace = workspace
        other._requests = Requests(self.tenant, workspace)
        return other

    def at(self, url: str) -> AsyncClient:
        """The same caller at another address, with a connection of its own."""
        other = copy.copy(self)
        for made in ("_channel", *STUBS):
            other.__dict__.pop(made, None)
        other._address = replace(self._address, url=url)
        return other

    async def close(self) -> None:
        await self._channel.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def deploy(
        self,
        manifest: manifest_pb2.Manifest,
        *,
        validate_only: bool = False,
        expected_version: int = 0,
        comment: str = "",
    ) -> planner_pb2.DeployResponse:
        request = self._requests.deploy(
            manifest, validate_only=validate_only, expected_version=expected_version, comment=comment
        )
        large = large_manifest(manifest)
        if large is not None:
            request = self._requests.deploy_large(request, await self.upload(large, "MANIFEST"))
        try:
            return await self.planner.Deploy(request)
        except InvalidRequest as refused:
            if not are_truncated(refused):
                raise
            failure: CallFailed = refused
            # Reporting some of the faults is better than failing because the others cannot be
            # listed.
            with suppress(CallFailed):
                listed = await self.planner.Deploy(self._requests.list_faults(request))
                failure = with_all_faults(refused, listed)
            raise failure from None

    async def upload(self, content: bytes, kind: Literal["SOURCE_ARCHIVE", "MANIFEST"]) -> str:
        try:
            return (await self.planner.UploadArtifact(self._requests.upload(content, kind))).digest
        except grpc.aio.AioRpcError as error:
            raise call_failed(error) from error

    async def download(self, digest: str) -> bytes:
        try:
            return b"".join(
                [piece.chunk async for piece in self.planner.DownloadArtifact(self._requests.download(digest, 0))]
            )
        except grpc.aio.AioRpcError as error:
            raise call_failed(error) from error

    def assets(self, *selection: str, filter: str = "") -> AsyncIterator[deployment_pb2.Asset]:  # noqa: A002
        return async_pages(self.planner.ListAssets, self._requests.assets(filter, selection, _PAGE_SIZE))

    async def trigger(
        self, run: Run, *, run_key: str = "", policy: RunKeyPolicy | None = None, comment: str = ""
    ) -> run_pb2.Run:
        request = self._requests.trigger(run, run_key=run_key, policy=policy or "", comment=comment)
        return (await self.scheduler.TriggerRun(request)).run

    async def run(self, run_id: str, *, wait_for_event_id: str = "") -> run_pb2.Run:
        return (await self.scheduler.GetRun(self._requests.get_run(run_id, wait_for_event_id))).run

    def runs(self, *, filter: str = "") -> AsyncIterator[run_pb2.Run]:  # noqa: A002
        return async_pages(self.scheduler.ListRuns, self._requests.list_runs(filter, _PAGE_SIZE))

    def tasks(self, run_id: str, *, filter: str = "") -> AsyncIterator[run_pb2.Task]:  # noqa: A002
        return async_pages(self.scheduler.ListTasks, self._requests.list_tasks(run_id, filter, _PAGE_SIZE))

    async def cancel(self, run_id: str, *, comment: str = "") -> run_pb2.Run:
        return (await self.scheduler.CancelRun(self._requests.cancel(run_id, comment))).run

    async def retry(self, run_id: str, *, current_code: bool = False, comment: str = "") -> run_pb2.Run:
        return (await self.scheduler.RetryRun(self._requests.retry(run_id, current_code, comment))).run

    async def plan(self, run: Run, *, max_tasks: int = 100) -> planner_pb2.PlanRunResponse:
        return await self.planner.PlanRun(self._requests.plan(run, max_tasks))

    async def task(self, run_id: str, task_id: str) -> scheduler_runs_pb2.GetTaskResponse:
        return await self.scheduler.GetTask(self._requests.get_task(run_id, task_id))

    def explain(self, run_id: str, task_id: str = "") -> AsyncIterator[scheduler_runs_pb2.Explanation]:
        return async_pages(self.scheduler.Explain, self._requests.explain(run_id, task_id))

    async def deployment(self, deployment_id: str = "current") -> deployment_pb2.Deployment:
        return (await self.planner.GetDeployment(self._requests.get_deployment(deployment_id))).deployment

    async def asset(self, key: str) -> deployment_pb2.Asset:
        return (await self.planner.GetAsset(self._requests.get_asset(key))).asset

    async def lineage(self, *selection: str) -> planner_pb2.GetLineageResponse:
        return await self.planner.GetLineage(self._requests.lineage(selection))

    def materializations(self, *, filter: str = "") -> AsyncIterator[materialization_pb2.Materialization]:  # noqa: A002
        return async_pages(self.scheduler.ListMaterializations, self._requests.materializations(filter, _PAGE_SIZE))

    def workers(self) -> AsyncIterator[worker_pb2.Worker]:
        return async_pages(self.dispatcher.ListWorkers, self._requests.workers(_PAGE_SIZE))

    def watch(
        self, run_id: str, *, include_events: bool = False, timeout: float | None = None
    ) -> AsyncIterator[scheduler_runs_pb2.WatchRunResponse]:
        return self._resumed(self.scheduler.WatchRun, self._requests.watch(run_id, include_events), timeout)

    async def logs(
        self,
        run_id: str,
        *,
        task_id: str = "",
        follow: bool = False,
        last_lines: int = 0,
        min_level: LogLevel | None = None,
    ) -> AsyncIterator[callback_pb2.LogLine]:
        request = self._requests.tail_logs(run_id, task_id, follow, last_lines, min_level or "")
        async for message in self._resumed(self.callback.TailLogs, request, None):
            for line in message.lines:
                yield line

    async def _resumed(self, call: Callable[..., Any], request: Any, timeout: float | None) -> AsyncIterator[Any]:
        pause, tries_left = PAUSE_MIN, FIRST_TRIES
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            try:
                async for message in call(request, timeout=left):
                    pause, tries_left = PAUSE_MIN, 0
                    request.resume_token = message.resume_token
                    yield message
            except grpc.aio.AioRpcError as error:
                tries_left -= 1
                if tries_left == 0 or not is_unavailable(error):
                    raise call_failed(error) from error
                await asyncio.sleep(pause)
                pause = min(pause * 2, PAUSE_MAX)
            else:
                return

    async def wait(self, run_id: str, *, timeout: float | None = None) -> run_pb2.Run:
        async for change in self.watch(run_id, timeout=timeout):
            if change.HasField("run") and change.run.state in TERMINAL:
                return change.run
        return await self.run(run_id)

    # Created by the first call, so that it belongs to the caller's event loop.
    @cached_property
    def _channel(self) -> grpc.aio.Channel:
        address = self._address
        return grpc.aio.secure_channel(
            address.target, address.credentials, address.options, interceptors=[_RetryInterceptor()]
        )

    @cached_property
    def planner(self) -> planner_pb2_grpc.PlannerServiceAsyncStub:
        return planner_pb2_grpc.PlannerServiceStub(self._channel)

    @cached_property
    def scheduler(self) -> scheduler_pb2_grpc.SchedulerServiceAsyncStub:
        return scheduler_pb2_grpc.SchedulerServiceStub(self._channel)

    @cached_property
    def callback(self) -> callback_pb2_grpc.CallbackServiceAsyncStub:
        return callback_pb2_grpc.CallbackServiceStub(self._channel)

    @cached_property
    def dispatcher(self) -> dispatcher_pb2_grpc.DispatcherServiceAsyncStub:
        return dispatcher_pb2_grpc.DispatcherServiceStub(self._channel)

    @cached_property
    def backfill(self) -> backfill_pb2_grpc.BackfillServiceAsyncStub:
        return backfill_pb2_grpc.BackfillServiceStub(self._channel)

    @cached_property
    def automation(self) -> automation_pb2_grpc.AutomationServiceAsyncStub:
        return automation_pb2_grpc.AutomationServiceStub(self._channel)

    @cached_property
    def quota(self) -> quota_pb2_grpc.QuotaServiceAsyncStub:
        return quota_pb2_grpc.QuotaServiceStub(self._channel)

    @cached_property
    def system(self) -> system_pb2_grpc.SystemServiceAsyncStub:
        return system_pb2_grpc.SystemServiceStub(self._channel)

    @cached_property
    def access(self) -> access_pb2_grpc.AccessServiceAsyncStub:
        return access_pb2_grpc.AccessServiceStub(self._channel)
