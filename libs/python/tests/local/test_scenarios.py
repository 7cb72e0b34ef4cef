"""Scenarios that the scheduler's fold and this one must agree on (tests/scenarios)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from servo.local.fold import (
    CheckFailed,
    Failed,
    FoldTask,
    Interrupted,
    Outcome,
    Run,
    Skipped,
    Succeeded,
    TaskRef,
    TaskState,
)
from servo.model.asset_key import AssetKey
from servo.model.categories import ErrorCategory
from servo.model.retry import RetryPolicy
from servo.model.task_key import TaskKey

_FILE = Path(__file__).resolve().parents[4] / "tests/scenarios/runs.json"
SCENARIOS: list[dict[str, Any]] = json.loads(_FILE.read_text())


def outcome(attempt: dict[str, Any]) -> Outcome:
    match attempt["outcome"]:
        case "succeeded":
            return Succeeded(attempt.get("items", 0))
        case "skipped":
            return Skipped()
        case "interrupted":
            return Interrupted()
        case "check_failed":
            return CheckFailed(attempt["message"])
        case "failed":
            category = ErrorCategory[attempt["category"]]
            return Failed(category, attempt.get("message", ""), attempt.get("type", ""), attempt.get("retriable"))
        case other:
            raise AssertionError(f"no outcome: {other}")


def begun(scenario: dict[str, Any]) -> tuple[Run, dict[str, int]]:
    ordinals = {task["name"]: ordinal for ordinal, task in enumerate(scenario["tasks"])}
    given: dict[str, Any] = {
        key: frozenset(value) if isinstance(value, list) else value for key, value in scenario.get("retry", {}).items()
    }
    tasks = [
        FoldTask(
            TaskKey(AssetKey("t", task["name"])),
            tuple(ordinals[name] for name in task["after"]),
            ordinals[task["over"]] if "over" in task else None,
            RetryPolicy(**given),
        )
        for task in scenario["tasks"]
    ]
    return Run("run_" + "a" * 26, tasks), ordinals


def run_down(run: Run, attempts: dict[TaskRef, list[Outcome]]) -> None:
    while True:
        if (ref := run.ready()) is not None:
            run.start(ref)
            left = attempts.get(ref, [])
            run.finish(ref, left.pop(0) if left else Succeeded())
        elif (ref := run.waiting()) is not None:
            run.retry_due(ref)
        else:
            return


def ref_of(name: str, ordinals: dict[str, int]) -> TaskRef:
    parent, bracket, item = name.partition("[")
    return TaskRef(ordinals[parent], int(item.rstrip("]")) if bracket else None)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["name"])
def test_scenario(scenario: dict[str, Any]) -> None:
    run, ordinals = begun(scenario)
    attempts = scenario.get("attempts", {})
    run_down(run, {ref_of(name, ordinals): [outcome(each) for each in ends] for name, ends in attempts.items()})
    expect = scenario["expect"]
    states = {ref_of(name, ordinals): TaskState[state] for name, state in expect["tasks"].items()}
    assert {ref: row.state for ref, row in run.rows.items()} == states
    assert run.state.value == expect["run"]
    assert (run.error[1] if run.error else None) == expect.get("error")
    for name, count in expect.get("attempts", {}).items():
        assert run.rows[ref_of(name, ordinals)].attempt == count, name


def test_wide_join_and_deep_chain_are_fast() -> None:
    key = TaskKey(AssetKey("t", "x"))
    wide = Run("run_" + "a" * 26, [FoldTask(key, ()), FoldTask(key, (0,), 0), FoldTask(key, (1,))])
    run_down(wide, {TaskRef(0): [Succeeded(10_000)]})
    assert (wide.state.value, len(wide.rows)) == ("SUCCEEDED", 10_003)
    deep = Run("run_" + "a" * 26, [FoldTask(key, (at - 1,) if at else ()) for at in range(20_000)])
    run_down(deep, {TaskRef(0): [Failed(ErrorCategory.USER_CODE)]})
    assert sum(row.state is TaskState.SKIPPED for row in deep.rows.values()) == 19_999
