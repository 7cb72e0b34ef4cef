"""The synchronous client.

    with Client("https://servo.example.com", api_key="…", tenant="acme", workspace="prod") as client:
        run = client.trigger(Run("+marts/revenue", partitions=LatestPartitions()))
        for change in client.watch(run.run_id): ...

The stubs under it are public too: ``client.planner``, ``client.scheduler`` and the others take the messages of
``servo.v1`` and get the same deadlines, request ids, repeats and exceptions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Literal

import grpc

from servo.define.run import Run
from servo.v1 import (
    access_pb2_grpc,
    automation_pb2_grpc,
    backfill_pb2_grpc,
    callback_pb2_grpc,
    deployment_pb2,
    dispatcher_pb2_grpc,
    manifest_pb2,
    planner_pb2,
    planner_pb2_grpc,
    quota_pb2_grpc,
    run_pb2,
    scheduler_pb2_grpc,
    scheduler_runs_pb2,
    state_pb2,
)

from .address import Address
from .channel import open_channel
from .pages import pages
from .requests import Requests, large_manifest
from .status import is_unavailable, told

RunKeyPolicy = Literal["return_existing", "reject", "retry_if_failed", "force"]
TERMINAL = (
    state_pb2.RUN_STATE_SUCCEEDED,
    state_pb2.RUN_STATE_FAILED,
    state_pb2.RUN_STATE_CANCELLED,
    state_pb2.RUN_STATE_TIMED_OUT,
)
PAUSE_MIN = 0.1
PAUSE_MAX = 5.0
_PAGE_SIZE = 100


class Client:
    def __init__(
        self,
        url: str,
        *,
        api_key: str,
        tenant: str,
        workspace: str,
        ca_file: str | Path | None = None,
        server_name: str = "",
    ) -> None:
        self._requests = Requests(tenant, workspace)
        self._address = Address(url, api_key, Path(ca_file).read_bytes() if ca_file else None, server_name)
        self._channel = open_channel(self._address)

    def close(self) -> None:
        self._channel.close()

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
        """Makes the manifest the workspace's current deployment, or only says what would change."""
        request = self._requests.deploy(
            manifest, validate_only=validate_only, expected_version=expected_version, comment=comment
        )
        large = large_manifest(manifest)
        if large is not None:
            request = self._requests.deploy_large(request, self.upload(large, "MANIFEST"))
        return self.planner.Deploy(request)

    def upload(self, content: bytes, kind: Literal["SOURCE_ARCHIVE", "MANIFEST"]) -> str:
        """Stores an artifact under its digest, which is answered; one that is there already stays."""
        try:
            return self.planner.UploadArtifact(self._requests.upload(content, kind)).digest
        except grpc.RpcError as error:
            raise told(error) from error

    def download(self, digest: str) -> bytes:
        try:
            pieces = self.planner.DownloadArtifact(self._requests.download(digest, 0))
            return b"".join(piece.chunk for piece in pieces)
        except grpc.RpcError as error:
            raise told(error) from error

    def assets(self, *selection: str, filter: str = "") -> Iterator[deployment_pb2.Asset]:  # noqa: A002
        return pages(self.planner.ListAssets, self._requests.assets(filter, selection, _PAGE_SIZE))

    def trigger(
        self, run: Run, *, run_key: str = "", policy: RunKeyPolicy | None = None, comment: str = ""
    ) -> run_pb2.Run:
        """Starts a run; with a ``run_key``, the same request again finds the same run."""
        request = self._requests.trigger(run, run_key=run_key, policy=policy or "", comment=comment)
        return self.scheduler.TriggerRun(request).run

    def run(self, run_id: str, *, wait_for_event_id: str = "") -> run_pb2.Run:
        return self.scheduler.GetRun(self._requests.get_run(run_id, wait_for_event_id)).run

    def runs(self, *, filter: str = "") -> Iterator[run_pb2.Run]:  # noqa: A002
        """Newest first."""
        return pages(self.scheduler.ListRuns, self._requests.list_runs(filter, _PAGE_SIZE))

    def tasks(self, run_id: str, *, filter: str = "") -> Iterator[run_pb2.Task]:  # noqa: A002
        return pages(self.scheduler.ListTasks, self._requests.list_tasks(run_id, filter, _PAGE_SIZE))

    def cancel(self, run_id: str, *, comment: str = "") -> run_pb2.Run:
        return self.scheduler.CancelRun(self._requests.cancel(run_id, comment)).run

    def retry(self, run_id: str, *, comment: str = "") -> run_pb2.Run:
        """A new run of what did not succeed."""
        return self.scheduler.RetryRun(self._requests.retry(run_id, comment)).run

    def explain(self, run_id: str) -> Iterator[scheduler_runs_pb2.Explanation]:
        """Why each of its tasks waits."""
        return pages(self.scheduler.Explain, self._requests.explain(run_id))

    def watch(self, run_id: str, *, include_events: bool = False) -> Iterator[scheduler_runs_pb2.WatchRunResponse]:
        """What changes about a run, until it has ended. A connection that breaks is made again, and the stream goes on
        behind the last message."""
        request = self._requests.watch(run_id, include_events)
        pause = PAUSE_MIN
        while True:
            try:
                for change in self.scheduler.WatchRun(request):
                    pause = PAUSE_MIN
                    request.resume_token = change.resume_token
                    yield change
            except grpc.RpcError as error:
                if not is_unavailable(error):
                    raise told(error) from error
                time.sleep(pause)
                pause = min(pause * 2, PAUSE_MAX)
            else:
                return

    def wait(self, run_id: str) -> run_pb2.Run:
        """The run, once it has ended."""
        for change in self.watch(run_id):
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
    def access(self) -> access_pb2_grpc.AccessServiceStub:
        return access_pb2_grpc.AccessServiceStub(self._channel)
