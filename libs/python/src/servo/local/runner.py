"""Calls the functions of a plan one after the other and folds their outcomes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from servo.data.formats import custom
from servo.define.asset import Asset
from servo.define.context import Context
from servo.define.durations import read_duration
from servo.define.io import is_custom
from servo.define.results import Fatal, Skip
from servo.define.settings import Retry
from servo.execute.annotations import wanted_frame
from servo.execute.attempt import AttemptState, run_attempt
from servo.execute.deadline import within
from servo.execute.errors import AttemptError, SecretMissing, describe
from servo.execute.outputs import Outputs
from servo.execute.packages import require_for_outputs
from servo.execute.quality import Gating, Read, blocking, prepare
from servo.execute.task_checks import attached, checks_of
from servo.manifest.project import Project
from servo.model.ids import run_id
from servo.model.partition_key import PartitionKey
from servo.v1 import manifest_pb2, materialization_pb2, state_pb2
from servo.worker.truncate import Finish, truncate

from .fold import CheckFailed, Failed, FoldTask, Outcome, Run, Skipped, Succeeded, TaskRef
from .plan import PlannedTask
from .result import MaterializeResult, TaskResult
from .retries import retry_policy
from .values import Load, Stored, Values

# A local run has no tenant; its ids only have to be stable.
_SECRET = bytes(32)


@dataclass(slots=True)
class _LastAttempt:
    """The result of a task's last attempt."""

    error: AttemptError | None = None
    attempted: AttemptState = field(default_factory=AttemptState)


class Runner:
    def __init__(
        self,
        project: Project,
        manifest: manifest_pb2.Manifest,
        tasks: Sequence[PlannedTask],
        given: Mapping[str, Any],
        config: Mapping[str, Any],
        secrets: Mapping[str, str],
        now: datetime,
        sleep: Callable[[float], None] | None,
    ) -> None:
        self.assets = {str(asset.key): asset for asset in project.assets}
        self.attached = attached(project.checks)
        self.tasks = tasks
        self.values = Values(given, _loads(project))
        self.config, self.secrets, self.now, self.sleep = config, secrets, now, sleep
        self.attempts: dict[TaskRef, _LastAttempt] = {}
        # As JSON texts, the form in which a worker gets them.
        self.items: dict[int, tuple[str, ...]] = {}
        folded = [
            FoldTask(task.key, task.upstream, task.mapped_over, retry_policy(manifest.assets[task.asset]))
            for task in tasks
        ]
        self.run_state = Run(run_id(_SECRET, "local", "local", "manual:local"), folded)

    def run(self) -> MaterializeResult:
        run = self.run_state
        while True:
            ref = run.ready()
            if ref is not None:
                self._attempt(ref)
                continue
            waiting = run.waiting()
            if waiting is None:
                return self._result()
            if self.sleep is not None:
                self.sleep(run.rows[waiting].delay_ms / 1000)
            run.retry_due(waiting)

    def _attempt(self, ref: TaskRef) -> None:
        row = self.run_state.start(ref)
        planned = self.tasks[ref.ordinal]
        asset = self.assets[str(planned.key.asset)]
        last_attempt = self.attempts[ref] = _LastAttempt()
        context = Context(
            asset_key=str(asset.key),
            partition=planned.key.partition,
            run_id=self.run_state.run_id,
            attempt_id=row.attempt_id,
            attempt=row.attempt,
            idempotency_key=self.run_state.key(ref).id,
            fencing_token=row.attempt,
            map_index=ref.item,
            config={**_plain(asset.settings.config), **self.config},
        )
        self.run_state.finish(ref, self._outcome(ref, asset, planned, context, last_attempt))

    def _outcome(
        self, ref: TaskRef, asset: Asset[..., Any], planned: PlannedTask, context: Context, last_attempt: _LastAttempt
    ) -> Outcome:
        attempted = last_attempt.attempted
        work = partial(self._run_user_code, ref, asset, planned, context, attempted)
        try:
            timeout = asset.settings.timeout
            seconds = None if timeout is None else read_duration(timeout).total_seconds()
            stored = work() if seconds is None else within(seconds, work, f"task-{asset.key}")
        except Skip as skip:
            return Skipped(skip.reason)
        # Ctrl-C ends the whole run.
        except KeyboardInterrupt:
            raise
        # An exception such as SystemExit fails the task, not the process.
        except BaseException as error:
            retry = Retry.of(asset.settings.retry, tuple(asset.settings.retry_on))
            last_attempt.error = describe(error, retry, asset.location)
            return Failed(
                last_attempt.error.category,
                last_attempt.error.message,
                last_attempt.error.type,
                last_attempt.error.retriable,
            )
        if attempted.made is None or attempted.gating is Gating.BLOCK:
            return CheckFailed(blocking(attempted.checks))
        quarantined = attempted.gating is Gating.QUARANTINE
        if not quarantined:
            self._keep(ref, planned.key.partition, attempted.made, stored)
        return Succeeded(len(attempted.made.items or ()), quarantined=quarantined)

    def _run_user_code(
        self, ref: TaskRef, asset: Asset[..., Any], planned: PlannedTask, context: Context, attempted: AttemptState
    ) -> dict[str, Stored]:
        """Runs user code and returns its stored outputs; they count once :meth:`_keep` is called."""
        # First, because a worker reads secrets before anything else.
        context = replace(context, secrets=self._secrets(asset))
        checks, quarantine = checks_of(asset, self.attached), asset.settings.quarantine
        # A local run never has a previous version.
        prepare(checks, [each.parameter for each in planned.inputs])
        require_for_outputs(asset)
        inputs = self._inputs(ref, asset, planned)
        run_attempt(asset, checks, inputs, context, self.now, attempted, quarantine=quarantine)
        if attempted.made is None or attempted.gating is Gating.BLOCK:
            return {}
        _check_size(attempted.made.items or ())
        ios = {str(output.key): output.io or asset.settings.io for output in asset.outputs}
        return {key: Stored.of(value, ios[key]) for key, value in attempted.made.values.items()}

    def _secrets(self, asset: Asset[..., Any]) -> dict[str, str]:
        """Only the declared secrets, because a worker passes no others."""
        for secret in asset.settings.secrets:
            if secret.name not in self.secrets:
                raise SecretMissing(
                    f"the secret `{secret.name}` is missing: give it to materialize, secrets={{{secret.name!r}: …}}"
                )
        return {secret.name: self.secrets[secret.name] for secret in asset.settings.secrets}

    def _inputs(self, ref: TaskRef, asset: Asset[..., Any], planned: PlannedTask) -> dict[str, Read]:
        inputs: dict[str, Read] = {}
        for each in planned.inputs:
            if each.mapped and ref.item is not None and planned.mapped_over is not None:
                inputs[each.parameter] = Read(json.loads(self.items[planned.mapped_over][ref.item]))
            else:
                value = self.values.read(each, wanted_frame(asset.function, each.parameter))
                inputs[each.parameter] = Read(value, several=not each.single)
        return inputs

    def _keep(self, ref: TaskRef, partition: PartitionKey | None, made: Outputs, stored: Mapping[str, Stored]) -> None:
        for key, value in stored.items():
            self.values.keep(key, partition, value, ref.item)
        if made.items is not None and ref.item is None:
            self.items[ref.ordinal] = made.items
            self._reserve_items(ref.ordinal, len(made.items))

    def _reserve_items(self, over: int, count: int) -> None:
        """Creates the lists for the values of mapped tasks, also for zero items."""
        for task in self.tasks:
            if task.mapped_over == over:
                for output in self.assets[str(task.key.asset)].outputs:
                    self.values.reserve_items(str(output.key), task.key.partition, count)

    def _result(self) -> MaterializeResult:
        run = self.run_state
        refs = sorted(run.rows, key=lambda ref: (ref.ordinal, -1 if ref.item is None else ref.item))
        attempts = [(ref, run.rows[ref], self.attempts.get(ref, _LastAttempt())) for ref in refs]
        results = [
            TaskResult(
                str(run.key(ref)),
                row.state,
                row.reason,
                row.attempt,
                last_attempt.error,
                last_attempt.attempted.checks,
            )
            for ref, row, last_attempt in attempts
        ]
        checks = [check for _, _, last_attempt in attempts for check in last_attempt.attempted.checks]
        flagged = any(not check.passed and check.severity == "error" for check in checks)
        return MaterializeResult(run.state, results, run.error[1] if run.error else "", self.values.made(), flagged)


def _check_size(items: Sequence[str]) -> None:
    """Fails with the same error for items that a worker could not report."""
    mapped = materialization_pb2.MappedItems(count=len(items), items_json=items)
    finish = truncate(Finish(outcome=state_pb2.OUTCOME_SUCCEEDED, items=mapped))
    if finish.HasField("error"):
        raise Fatal(finish.error.message)


def _loads(project: Project) -> dict[str, Load]:
    return {str(each.key): custom(each.io, "load").load for each in project.sources if is_custom(each.io)}


def _plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """Through JSON, as on its way to a worker."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(config)))
    return plain
