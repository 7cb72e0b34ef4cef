"""The content of a plan and its fingerprint; equal plans have equal fingerprints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .canonical import Json, canonical, sha256_hex

_SPEC_VERSION = 1


@dataclass(frozen=True, slots=True)
class PlanResources:
    cpu_millicores: int
    memory_bytes: int
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class PlanTask:
    task_key: str
    upstream_keys: tuple[str, ...]
    priority: int
    resources: PlanResources


def normalised(tenant: str, workspace: str, tasks: Iterable[PlanTask]) -> str:
    """The plan as canonical JSON, without generated ids and times."""
    return canonical(_shape(tenant, workspace, tasks))


def fingerprint(tenant: str, workspace: str, tasks: Iterable[PlanTask]) -> str:
    """For comparing two plans; never used as a key."""
    return f"v1:sha256:{sha256_hex(_shape(tenant, workspace, tasks))}"


def _shape(tenant: str, workspace: str, tasks: Iterable[PlanTask]) -> dict[str, Json]:
    return {
        "spec_version": _SPEC_VERSION,
        "tenant_id": tenant,
        "workspace_id": workspace,
        "tasks": [_task(task) for task in sorted(tasks, key=lambda task: task.task_key)],
    }


def _task(task: PlanTask) -> dict[str, Json]:
    return {
        "task_key": task.task_key,
        "upstream_keys": sorted(set(task.upstream_keys)),
        "priority": task.priority,
        "resources": {
            "cpu_millicores": task.resources.cpu_millicores,
            "memory_bytes": task.resources.memory_bytes,
            "timeout_ms": task.resources.timeout_ms,
        },
    }
