"""The synchronous client.

    with Client("https://servo.example.com", api_key="…", tenant="acme", workspace="prod") as client:
        run = client.trigger(Run("+marts/revenue", partitions=LatestPartitions()))
        for change in client.watch(run.run_id): ...

The stubs under it are public too: ``client.planner``, ``client.scheduler`` and the others take the messages of
``servo.v1`` and get the same deadlines, request ids, repeats and exceptions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
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
    state_pb2,
    system_pb2_grpc,
    worker_pb2,
)

from .address import STUBS, Address, read_authority
from .channel import closed_channel, open_channel
from .errors import CallFailed, InvalidRequest
from .manifest_faults import are_truncated, with_all_faults
from .pages import pages
from .requests import Requests, large_manifest
from .status import call_failed, is_unavailable

RunKeyPolicy = Literal["return_existing", "reject", "retry_if_failed", "force"]
LogLevel = Literal["debug", "info", "warning", "error"]
TERMINAL = (
    state_pb2.RUN_STATE_SUCCEEDED,
    state_pb2.RUN_STATE_FAILED,
    state_pb2.RUN_STATE_CANCELLED,
    state_pb2.RUN_STATE_TIMED_OUT,
)
PAUSE_MIN = 0.1
PAUSE_MAX = 5.0
# Tries to open a stream that has never been open.
FIRST_TRIES = 5
_PAGE_SIZE = 100


class Client:
    """A client of one workspace. The caller is an API key, given once (``api_key``) or provided for
    every call by a function or a file (``token``). The gateway accepts no other tokens yet.
    """

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
        self._channel = open_channel(self._address)

    def close(self) -> None:
        self._channel.close()
        self._channel = closed_channel()
        for stub in STUBS:
            self.__dict__.pop(stub, None)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def deploy(
        self,
        manifest: manifest_pb2.Manifest,
        *,
        validate_only: bool = False,
        expected_version: int = 0,
        comment: str = "",
    ) -> planner_pb2.DeployResponse:
        """Makes the manifest the workspace's current deployment, or only returns the difference."""
        request = self._requests.deploy(
            manifest, validate_only=validate_only, expected_version=expected_version, comment=comment
        )
        large = large_manifest(manifest)
        if large is not None:
            request = self._requests.deploy_large(request, self.upload(large, "MANIFEST"))
        try:
            return self.planner.Deploy(request)
        except InvalidRequest as refused:
            if not are_truncated(refused):
                raise
            failure: CallFailed = refused
            # Reporting some of the faults is better than failing because the others cannot be
            # listed.
            with suppress(CallFailed):
                listed = self.planner.Deploy(self._requests.list_faults(request))
                failure = with_all_faults(refused, listed)
            raise failure from None

    def upload(self, content: bytes, kind: Literal["SOURCE_ARCHIVE", "MANIFEST"]) -> str:
        """Stores an artifact and returns its digest; an existing one is kept."""
        try:
            return self.planner.UploadArtifact(self._requests.upload(content, kind)).digest
        except grpc.RpcError as error:
            raise call_failed(error) from error

    def download(self, digest: str) -> bytes:
        try:
            pieces = self.planner.DownloadArtifact(self._requests.download(digest, 0))
            return b"".join(piece.chunk for piece in pieces)
        except grpc.RpcError as error:
            raise call_failed(error) from error

    def assets(self, *selection: str, filter: str = "") -> Iterator[deployment_pb2.Asset]:  # noqa: A002
        return pages(self.planner.ListAssets, self._requests.assets(filter, selection, _PAGE_SIZE))

    def trigger(
        self, run: Run, *, run_key: str = "", policy: RunKeyPolicy | None = None, comment: str = ""
    ) -> run_pb2.Run:
        """Starts a run; with a ``run_key``, the same request returns the same run."""
        request = self._requests.trigger(run, run_key=run_key, policy=policy or "", comment=comment)
        return self.scheduler.TriggerRun(request).run

    def run(self, run_id: str, *, wait_for_event_id: str = "") -> run_pb2.Run:
        return self.scheduler.GetRun(self._requests.get_run(run_id, wait_for_event_id)).run

    def runs(self, *, filter: str = "") -> Iterator[run_pb2.Run]:  # noqa: A002
        """Runs, newest first."""
        return pages(self.scheduler.ListRuns, self._requests.list_runs(filter, _PAGE_SIZE))

    def tasks(self, run_id: str, *, filter: str = "") -> Iterator[run_pb2.Task]:  # noqa: A002
        return pages(self.scheduler.ListTasks, self._requests.list_tasks(run_id, filter, _PAGE_SIZE))

    def cancel(self, run_id: str, *, comment: str = "") -> run_pb2.Run:
        return self.scheduler.CancelRun(self._requests.cancel(run_id, comment)).run

    def retry(self, run_id: str, *, current_code: bool = False, comment: str = "") -> run_pb2.Run:
        """Starts a run of the tasks that did not succeed, with the code of the run or the current deployment."""
        return self.scheduler.RetryRun(self._requests.retry(run_id, current_code, comment)).run

    def plan(self, run: Run, *, max_tasks: int = 100) -> planner_pb2.PlanRunResponse:
        """The plan that ``trigger`` would follow; lists at most ``max_tasks`` tasks."""
        return self.planner.PlanRun(self._requests.plan(run, max_tasks))

    def task(self, run_id: str, task_id: str) -> scheduler_runs_pb2.GetTaskResponse:
        """One task with its attempts and its history."""
        return self.scheduler.GetTask(self._requests.get_task(run_id, task_id))

    def explain(self, run_id: str, task_id: str = "") -> Iterator[scheduler_runs_pb2.Explanation]:
        """Why each task of the run waits, or this one task."""
        return pages(self.scheduler.Explain, self._requests.explain(run_id, task_id))

    def deployment(self, deployment_id: str = "current") -> deployment_pb2.Deployment:
        return self.planner.GetDeployment(self._requests.get_deployment(deployment_id)).deployment

    def asset(self, key: str) -> deployment_pb2.Asset:
        return self.planner.GetAsset(self._requests.get_asset(key)).asset

    def lineage(self, *selection: str) -> planner_pb2.GetLineageResponse:
        return self.planner.GetLineage(self._requests.lineage(selection))

    def materializations(self, *, filter: str = "") -> Iterator[materialization_pb2.Materialization]:  # noqa: A002
        """Versions of data, newest first."""
        return pages(self.scheduler.ListMaterializations, self._requests.materializations(filter, _PAGE_SIZE))

    def workers(self) -> Iterator[worker_pb2.Worker]:
        """The tenant's workers."""
        return pages(self.dispatcher.ListWorkers, self._requests.workers(_PAGE_SIZE))

    def watch(
        self, run_id: str, *, include_events: bool = False, timeout: float | None = None
    ) -> Iterator[scheduler_runs_pb2.WatchRunResponse]:
        """Changes of a run, until it ends or the timeout passes. A broken connection is reopened
        and the stream resumes after the last message.
        """
        return self._resumed(self.scheduler.WatchRun, self._requests.watch(run_id, include_events), timeout)

    def logs(
        self,
        run_id: str,
        *,
        task_id: str = "",
        follow: bool = False,
        last_lines: int = 0,
        min_level: LogLevel | None = None,
    ) -> Iterator[callback_pb2.LogLine]:
        """The logs of the run's tasks; when followed, until the run ends."""
        request = self._requests.tail_logs(run_id, task_id, follow, last_lines, min_level or "")
        for message in self._resumed(self.callback.TailLogs, request, None):
            yield from message.lines

    def _resumed(self, call: Callable[..., Any], request: Any, timeout: float | None) -> Iterator[Any]:
        """Reopens a broken stream until the timeout; a server that was never reached fails after a few tries."""
        pause, tries_left = PAUSE_MIN, FIRST_TRIES
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            try:
                for message in call(request, timeout=left):
                    pause, tries_left = PAUSE_MIN, 0
                    request.resume_token = message.resume_token
                    yield message
            except grpc.RpcError as error:
                tries_left -= 1
                if tries_left == 0 or not is_unavailable(error):
                    raise call_failed(error) from error
                time.sleep(pause)
                pause = min(pause * 2, PAUSE_MAX)
            else:
                return

    def wait(self, run_id: str, *, timeout: float | None = None) -> run_pb2.Run:
        """Waits until the run has ended and returns it."""
        for change in self.watch(run_id, timeout=timeout):
            if change.HasField("run") and change.run.state in TERMINAL:
                return change.run
        return self.run(run_id)

    @cached_property
    def planner(self) -> planner_pb2_grpc.PlannerServiceStub:
        return planner_pb2_grpc.PlannerServiceStub(self._channel)

    @cached_property
    def scheduler(self) -> scheduler_pb2_grpc.SchedulerServiceStub:
        return scheduler_pb2_grpc.SchedulerServiceStub(self._channel)

    @cached_property
    def dispatcher(self) -> dispatcher_pb2_grpc.DispatcherServiceStub:
        return dispatcher_pb2_grpc.DispatcherServiceStub(self._channel)

    @cached_property
    def callback(self) -> callback_pb2_grpc.CallbackServiceStub:
        return callback_pb2_grpc.CallbackServiceStub(self._channel)

    @cached_property
    def backfill(self) -> backfill_pb2_grpc.BackfillServiceStub:
        return backfill_pb2_grpc.BackfillServiceStub(self._channel)

    @cached_property
    def automation(self) -> automation_pb2_grpc.AutomationServiceStub:
        return automation_pb2_grpc.AutomationServiceStub(self._channel)

    @cached_property
    def quota(self) -> quota_pb2_grpc.QuotaServiceStub:
        return quota_pb2_grpc.QuotaServiceStub(self._channel)

    @cached_property
    def system(self) -> system_pb2_grpc.SystemServiceStub:
        return system_pb2_grpc.SystemServiceStub(self._channel)

    @cached_property
    def access(self) -> access_pb2_grpc.AccessServiceStub:
        return access_pb2_grpc.AccessServiceStub(self._channel)
