"""The result of a run without a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from servo.define.asset import Asset, Output
from servo.errors import ServoError
from servo.execute.errors import AttemptError
from servo.execute.quality import CheckResult
from servo.model.partition_key import PartitionKey

from .fold import RunState, TaskState


class RunFailed(ServoError):
    """At least one task failed."""

    def __init__(self, result: MaterializeResult) -> None:
        self.result = result
        lines = [f"{task.key}: {_summary(task.error)}" for task in result.failed if task.error]
        super().__init__("\n".join(lines) or result.error)


@dataclass(frozen=True, slots=True)
class TaskResult:
    key: str
    state: TaskState
    reason: str
    attempts: int
    error: AttemptError | None = None
    checks: Sequence[CheckResult] = ()


@dataclass(frozen=True, slots=True)
class MaterializeResult:
    state: RunState
    # In plan order, children after their parents.
    tasks: Sequence[TaskResult]
    error: str
    values: Mapping[tuple[str, PartitionKey | None], Any]
    # Whether a check of severity error failed.
    flagged: bool

    @property
    def succeeded(self) -> bool:
        return self.state is RunState.SUCCEEDED

    @property
    def failed(self) -> list[TaskResult]:
        return [task for task in self.tasks if task.state is TaskState.FAILED]

    def task(self, key: str) -> TaskResult:
        """Finds a task by its key, with or without ``:materialize``."""
        for task in self.tasks:
            if key in (task.key, task.key.removesuffix(":materialize")):
                return task
        raise KeyError(f"there was no task `{key}`; there were {', '.join(task.key for task in self.tasks)}")

    def value(self, asset: str | Asset[..., Any] | Output, partition: PartitionKey | str | None = None) -> Any:
        """The value of an asset, or of one of its partitions."""
        key = asset if isinstance(asset, str) else str(asset.key)
        wanted = key, PartitionKey.parse(partition) if isinstance(partition, str) else partition
        if wanted not in self.values:
            there = ", ".join(_shown(*each) for each in self.values) or "none"
            raise KeyError(f"there is no value of {_shown(*wanted)}; there are {there}")
        return self.values[wanted]

    def raise_for_failure(self) -> None:
        if not self.succeeded:
            original = next((task.error for task in self.failed if task.error), None)
            raise RunFailed(self) from (original.exception if original else None)


def _shown(key: str, partition: PartitionKey | None) -> str:
    return key if partition is None else f"{key}[{partition}]"


def _summary(error: AttemptError) -> str:
    return f"{error.message} ({error.location})" if error.location else error.message
