"""The same scenarios (tests/scenarios), with functions that ``materialize`` runs."""

from __future__ import annotations

from typing import Any

import pytest

from servo import CheckOutcome, Context, Fatal, In, Items, Retriable, Retry, Skip, asset, check, materialize
from servo.execute.deadline import DeadlinePassed
from servo.execute.errors import InputMissing
from servo.manifest.project import Definition
from servo.model.task_key import TaskKey

from .test_scenarios import SCENARIOS

# An exception for each category.
BASES: dict[str, type[Exception]] = {
    "TRANSIENT": ConnectionError,
    "INFRASTRUCTURE": MemoryError,
    "TIMEOUT": DeadlinePassed,
    "USER_CODE": Exception,
    "INPUT": InputMissing,
}
RETRY_BASES: dict[bool | None, tuple[type[Exception], ...]] = {None: (), True: (Retriable,), False: (Fatal,)}


def applies(scenario: dict[str, Any]) -> bool:
    """Without a worker nothing is interrupted, and an empty plan is not a run."""
    ends = [each["outcome"] for attempts in scenario.get("attempts", {}).values() for each in attempts]
    return bool(scenario["tasks"]) and "interrupted" not in ends


def error(attempt: dict[str, Any]) -> Exception:
    bases = (*RETRY_BASES[attempt.get("retriable")], BASES[attempt["category"]])
    kind: type[Exception] = type(attempt.get("type") or "Failure", bases, {})
    return kind(attempt.get("message", ""))


class ScenarioAssets:
    def __init__(self, scenario: dict[str, Any]) -> None:
        self.scenario = scenario
        given = scenario.get("retry", {})
        self.retry = Retry(
            attempts=given.get("max_attempts"),
            on=tuple(given.get("retry_types", ())),
            never_on=tuple(given.get("never_types", ())),
        )
        self.mapped_over = {task["over"] for task in scenario["tasks"] if "over" in task}

    def definitions(self) -> list[Definition]:
        return [each for task in self.scenario["tasks"] for each in self.defined(task)]

    def defined(self, task: dict[str, Any]) -> list[Definition]:
        name = task["name"]
        deps = [In(f"t/{each}", each=each == task.get("over")) for each in task["after"]]

        @asset(namespace="t", name=name, deps=deps, retry=self.retry, yields_items=name in self.mapped_over)
        def function(context: Context) -> Any:
            return self.ends(name, context)

        @check(function, severity="critical")
        def has_no_message(value: Any) -> CheckOutcome:
            return CheckOutcome(not isinstance(value, str), value if isinstance(value, str) else "")

        return [function, has_no_message]

    def ends(self, name: str, context: Context) -> Any:
        ref = name if context.map_index is None else f"{name}[{context.map_index}]"
        ends = self.scenario.get("attempts", {}).get(ref, [])
        attempt: dict[str, Any] = (
            ends[context.attempt - 1] if context.attempt <= len(ends) else {"outcome": "succeeded"}
        )
        match attempt["outcome"]:
            case "skipped":
                raise Skip
            case "check_failed":
                return attempt["message"]
            case "failed":
                raise error(attempt)
        return Items(range(attempt.get("items", 0))) if name in self.mapped_over else None


def ref_name(key: str) -> str:
    parsed = TaskKey.parse(key)
    item = parsed.map_index
    return parsed.asset.name if item is None else f"{parsed.asset.name}[{item}]"


@pytest.mark.parametrize(
    "scenario", [each for each in SCENARIOS if applies(each)], ids=lambda scenario: scenario["name"]
)
def test_scenario(scenario: dict[str, Any]) -> None:
    result = materialize(ScenarioAssets(scenario).definitions(), raise_on_error=False)
    expect = scenario["expect"]
    tasks = {ref_name(task.key): task for task in result.tasks}
    assert {name: task.state.value for name, task in tasks.items()} == expect["tasks"]
    assert result.state.value == expect["run"]
    # The message of a check is preceded by its name.
    assert result.error.replace("the check `has_no_message` failed: ", "") == expect.get("error", "")
    for name, count in expect.get("attempts", {}).items():
        assert tasks[name].attempts == count, name


def test_nearly_all_scenarios_apply() -> None:
    assert len([each for each in SCENARIOS if not applies(each)]) == 2
