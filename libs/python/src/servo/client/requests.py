"""The requests behind the methods of both clients."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from servo.define.run import Run
from servo.manifest.automation import run_spec
from servo.manifest.canonical import text
from servo.model.asset_key import AssetKey
from servo.model.ids import check_run_id, check_slug
from servo.model.limits import MANIFEST_INLINE_BYTES_MAX
from servo.model.run_key import check_chosen
from servo.v1 import (
    callback_pb2,
    dispatcher_pb2,
    manifest_pb2,
    planner_pb2,
    scheduler_data_pb2,
    scheduler_runs_pb2,
)

_CHUNK_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Requests:
    tenant: str
    workspace: str

    def __post_init__(self) -> None:
        check_slug("tenant", self.tenant)
        check_slug("workspace", self.workspace)

    def deploy(
        self, manifest: manifest_pb2.Manifest, *, validate_only: bool, expected_version: int, comment: str
    ) -> planner_pb2.DeployRequest:
        return planner_pb2.DeployRequest(
            tenant=self.tenant,
            workspace=self.workspace,
            manifest=manifest,
            validate_only=validate_only,
            expected_version=expected_version,
            comment=comment,
        )

    def deploy_large(self, small: planner_pb2.DeployRequest, digest: str) -> planner_pb2.DeployRequest:
        """The same request with a manifest that was uploaded under this digest."""
        large = planner_pb2.DeployRequest()
        large.CopyFrom(small)
        large.manifest_uri = f"artifact:{digest}"
        large.manifest_digest = digest
        return large

    def list_faults(self, refused: planner_pb2.DeployRequest) -> planner_pb2.DeployRequest:
        """The request that returns all faults of a refused manifest."""
        listed = planner_pb2.DeployRequest()
        listed.CopyFrom(refused)
        listed.ClearField("request_id")
        listed.validate_only = True
        listed.list_faults = True
        return listed

    def upload(self, content: bytes, kind: str) -> Iterator[planner_pb2.UploadArtifactRequest]:
        """The content in chunks; the first message describes it."""
        digest = hashlib.sha256(content).hexdigest()
        for start in range(0, max(len(content), 1), _CHUNK_BYTES):
            yield planner_pb2.UploadArtifactRequest(
                tenant=self.tenant,
                workspace=self.workspace,
                digest=digest if start == 0 else "",
                kind=f"ARTIFACT_KIND_{kind}" if start == 0 else None,
                chunk=content[start : start + _CHUNK_BYTES],
            )

    def download(self, digest: str, offset: int) -> planner_pb2.DownloadArtifactRequest:
        return planner_pb2.DownloadArtifactRequest(
            tenant=self.tenant, workspace=self.workspace, digest=digest, offset=offset
        )

    def trigger(self, run: Run, *, run_key: str, policy: str, comment: str) -> scheduler_runs_pb2.TriggerRunRequest:
        return scheduler_runs_pb2.TriggerRunRequest(
            tenant=self.tenant,
            workspace=self.workspace,
            run_key=check_chosen(run_key) if run_key else "",
            run_key_policy=f"RUN_KEY_POLICY_{policy.upper()}" if policy else None,
            spec=run_spec(run),
            comment=comment,
        )

    def get_run(self, run_id: str, wait_for: str) -> scheduler_runs_pb2.GetRunRequest:
        return scheduler_runs_pb2.GetRunRequest(
            tenant=self.tenant, workspace=self.workspace, run_id=check_run_id(run_id), wait_for_event_id=wait_for
        )

    def list_runs(self, filter_: str, page_size: int) -> scheduler_runs_pb2.ListRunsRequest:
        return scheduler_runs_pb2.ListRunsRequest(
            tenant=self.tenant, workspace=self.workspace, filter=filter_, page_size=page_size
        )

    def list_tasks(self, run_id: str, filter_: str, page_size: int) -> scheduler_runs_pb2.ListTasksRequest:
        return scheduler_runs_pb2.ListTasksRequest(
            tenant=self.tenant,
            workspace=self.workspace,
            run_id=check_run_id(run_id),
            filter=filter_,
            page_size=page_size,
        )

    def cancel(self, run_id: str, comment: str) -> scheduler_runs_pb2.CancelRunRequest:
        return scheduler_runs_pb2.CancelRunRequest(
            tenant=self.tenant, workspace=self.workspace, run_id=check_run_id(run_id), comment=comment
        )

    def retry(self, run_id: str, current_code: bool, comment: str) -> scheduler_runs_pb2.RetryRunRequest:
        return scheduler_runs_pb2.RetryRunRequest(
            tenant=self.tenant,
            workspace=self.workspace,
            run_id=check_run_id(run_id),
            use_current_deployment=current_code,
            comment=comment,
        )

    def explain(self, run_id: str, task_id: str = "") -> scheduler_runs_pb2.ExplainRequest:
        return scheduler_runs_pb2.ExplainRequest(
            tenant=self.tenant, workspace=self.workspace, run_id=check_run_id(run_id), task_id=task_id
        )

    def watch(self, run_id: str, include_events: bool) -> scheduler_runs_pb2.WatchRunRequest:
        return scheduler_runs_pb2.WatchRunRequest(
            tenant=self.tenant, workspace=self.workspace, run_id=check_run_id(run_id), include_events=include_events
        )

    def get_task(self, run_id: str, task_id: str) -> scheduler_runs_pb2.GetTaskRequest:
        return scheduler_runs_pb2.GetTaskRequest(
            tenant=self.tenant, workspace=self.workspace, run_id=check_run_id(run_id), task_id=task_id
        )

    def tail_logs(
        self, run_id: str, task_id: str, follow: bool, last_lines: int, min_level: str
    ) -> callback_pb2.TailLogsRequest:
        return callback_pb2.TailLogsRequest(
            tenant=self.tenant,
            workspace=self.workspace,
            run_id=check_run_id(run_id),
            task_id=task_id,
            follow=follow,
            last_lines=last_lines,
            min_level=f"LOG_LEVEL_{min_level.upper()}" if min_level else None,
        )

    def plan(self, run: Run, max_tasks: int) -> planner_pb2.PlanRunRequest:
        return planner_pb2.PlanRunRequest(
            tenant=self.tenant, workspace=self.workspace, spec=run_spec(run), max_tasks=max_tasks
        )

    def get_deployment(self, deployment_id: str) -> planner_pb2.GetDeploymentRequest:
        return planner_pb2.GetDeploymentRequest(
            tenant=self.tenant, workspace=self.workspace, deployment_id=deployment_id
        )

    def get_asset(self, key: str) -> planner_pb2.GetAssetRequest:
        asset = AssetKey.parse(key)
        return planner_pb2.GetAssetRequest(
            tenant=self.tenant, workspace=self.workspace, namespace=asset.namespace, name=asset.name
        )

    def lineage(self, selection: tuple[str, ...]) -> planner_pb2.GetLineageRequest:
        return planner_pb2.GetLineageRequest(tenant=self.tenant, workspace=self.workspace, selection=selection)

    def materializations(self, filter_: str, page_size: int) -> scheduler_data_pb2.ListMaterializationsRequest:
        return scheduler_data_pb2.ListMaterializationsRequest(
            tenant=self.tenant, workspace=self.workspace, filter=filter_, page_size=page_size
        )

    def workers(self, page_size: int) -> dispatcher_pb2.ListWorkersRequest:
        return dispatcher_pb2.ListWorkersRequest(tenant=self.tenant, page_size=page_size)

    def assets(self, filter_: str, selection: tuple[str, ...], page_size: int) -> planner_pb2.ListAssetsRequest:
        return planner_pb2.ListAssetsRequest(
            tenant=self.tenant, workspace=self.workspace, filter=filter_, selection=selection, page_size=page_size
        )


def large_manifest(manifest: manifest_pb2.Manifest) -> bytes | None:
    """The JSON form of a manifest that is too large to be sent inline."""
    return text(manifest).encode() if manifest.ByteSize() > MANIFEST_INLINE_BYTES_MAX else None
