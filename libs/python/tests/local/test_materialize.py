"""Whole graphs in one process, as users write them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, cast

import pytest

import servo
from servo import (
    AllPartitions,
    AssetKey,
    CheckOutcome,
    Context,
    Daily,
    Fatal,
    Hourly,
    In,
    InvalidValue,
    Items,
    LatestPartitions,
    Monthly,
    Output,
    PartitionKey,
    Partitions,
    Retriable,
    Retry,
    RunFailed,
    Skip,
    Slice,
    Slices,
    Static,
    Window,
    asset,
    check,
    checks,
    mapped,
    materialize,
    multi_asset,
    skip,
    source,
)
from servo.define.checks import Check

NOW = datetime(2026, 2, 1, tzinfo=UTC)


@asset
def numbers() -> list[int]:
    return [1, 2, 3]


@asset
def doubled(numbers: list[int]) -> list[int]:
    return [2 * number for number in numbers]


@asset
def total(doubled: list[int], numbers: list[int], rate: int = 10) -> int:
    return (sum(doubled) + sum(numbers)) * rate


def test_graph_runs_in_order() -> None:
    result = materialize([total, doubled, numbers])
    assert result.value(total) == 180
    assert [task.key for task in result.tasks] == [f"default/{n}:materialize" for n in ("numbers", "doubled", "total")]


def test_inputs_provide_assets_that_are_not_run() -> None:
    assert materialize([doubled], inputs={numbers: [5]}).value(doubled) == [10]
    assert materialize([doubled], inputs={"numbers": [6]}).value(doubled) == [12]
    assert materialize([numbers, doubled, total], selection="default/doubled", inputs={"default/numbers": [7]}).value(
        doubled
    ) == [14]
    raw = source("numbers", namespace="raw")
    assert materialize([raw, doubled], inputs={raw: [8]}).value(doubled) == [16]


def test_unused_inputs_are_refused() -> None:
    with pytest.raises(InvalidValue, match="inputs gives `default/numbers`, which is run here; take it out of the def"):
        materialize([numbers, doubled], inputs={"numbers": [5]})
    with pytest.raises(
        InvalidValue, match="inputs gives `default/number`, which nothing here reads; did you mean `def"
    ):
        materialize([doubled], inputs={"numbers": [5], "number": [6]})


def test_inputs_provide_partitions_that_are_not_run() -> None:
    @asset(partitions=Daily("2026-01-01"))
    def steps() -> int:
        return 1

    @asset(partitions=Daily("2026-01-01"), deps={"steps": In(steps, mapping={"day": Window(-1, 0)})})
    def sums(steps: Mapping[PartitionKey, int]) -> int:
        return sum(steps.values())

    result = materialize([steps, sums], partition="day=d:2026-01-02", selection=sums, inputs={steps: 10}, now=NOW)
    assert result.value(sums, "day=d:2026-01-02") == 20
    result = materialize([steps, sums], partition="day=d:2026-01-02", inputs={steps: 10}, now=NOW)
    assert result.value(sums, "day=d:2026-01-02") == 11


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"definitions": numbers}, r"definitions is one Asset; write a list: materialize\(\[…\]\)"),
        ({"definitions": [numbers, print]}, "definitions holds <built-in function print>; write assets, or modules"),
        ({"definitions": [numbers], "config": 5}, "config is one int; write a mapping"),
        ({"definitions": [numbers], "secrets": "hunter2"}, "secrets is one text; write a mapping"),
    ],
)
def test_invalid_definitions_arguments_are_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidValue, match=sentence):
        materialize(**given)


def test_assets_can_be_selected_as_objects() -> None:
    for selection in (doubled, [doubled], "default/doubled"):
        result = materialize([numbers, doubled, total], selection=selection, inputs={numbers: [1]})
        assert [task.key for task in result.tasks] == ["default/doubled:materialize"]
    with pytest.raises(KeyError, match="there is no value of default/total; there are default/doubled"):
        result.value(total)


def test_missing_input_names_the_remedy() -> None:
    with pytest.raises(RunFailed, match=r"`default/numbers` is not there for the parameter `numbers`; materialize it"):
        materialize([numbers, doubled], selection="default/doubled")


def test_failure_names_file_and_line_and_skips_downstream() -> None:
    @asset
    def broken(numbers: list[int]) -> int:
        return numbers[99]

    @asset
    def after(broken: int) -> int:
        return broken

    with pytest.raises(RunFailed) as raised:
        materialize([numbers, doubled, broken, after])
    result = raised.value.result
    error = result.task("default/broken").error
    assert error
    assert (error.type, error.message) == ("IndexError", "list index out of range")
    file, _, line = error.location.rpartition(":")
    assert file.endswith("test_materialize.py")
    assert "return numbers[99]" in Path(__file__).read_text().splitlines()[int(line) - 1]
    assert "IndexError" in error.traceback
    assert isinstance(raised.value.__cause__, IndexError)
    assert {task.key: task.state.value for task in result.tasks} == {
        "default/numbers:materialize": "SUCCEEDED",
        "default/doubled:materialize": "SUCCEEDED",
        "default/broken:materialize": "FAILED",
        "default/after:materialize": "SKIPPED",
    }
    assert result.error == "default/broken:materialize: list index out of range"


def test_retries_follow_the_policy() -> None:
    class Flaky(Exception):
        pass

    class VeryFlaky(Flaky):
        pass

    tries: list[str] = []

    @asset(retry=Retry(attempts=3, backoff="constant", delay="10s"), retry_on=[Flaky])
    def moody(context: Context) -> int:
        tries.append(context.attempt_id)
        if context.attempt < 3:
            raise VeryFlaky("not yet")
        return context.attempt

    waits: list[float] = []
    result = materialize([moody], sleep=waits.append)
    assert (result.value(moody), result.task("default/moody").attempts) == (3, 3)
    assert len(set(tries)) == 3
    assert all(5 <= wait <= 10 for wait in waits)
    assert len(waits) == 2


def test_single_retry_cause_is_accepted() -> None:
    class Flaky(Exception):
        pass

    @asset(retry=2, retry_on=Flaky)
    def moody(context: Context) -> int:
        if context.attempt < 2:
            raise Flaky
        return context.attempt

    assert materialize([moody]).value(moody) == 2


@pytest.mark.parametrize(
    ("error", "attempts"),
    [(ValueError("x"), 1), (ConnectionError("x"), 3), (Retriable("x"), 3), (Fatal("x"), 1), (TimeoutError("x"), 3)],
)
def test_error_category_decides_about_retries(error: Exception, attempts: int) -> None:
    @asset
    def failing() -> None:
        raise error

    result = materialize([failing], raise_on_error=False)
    assert (result.succeeded, result.tasks[0].attempts) == (False, attempts)


def raises_skip() -> int:
    skip("nothing new")


def answers_skip() -> Skip:
    return Skip("nothing new")


@pytest.mark.parametrize(("high", "ends"), [([3], "SUCCEEDED"), ([], "FAILED")])
def test_each_output_has_its_own_checks(high: list[int], ends: str) -> None:
    one, other = Output(AssetKey("n", "low")), Output(AssetKey("n", "high"), checks=[checks.row_count(at_least=1)])

    @multi_asset(outputs=[one, other], namespace="n", checks=[checks.row_count(at_most=0)])
    def halves() -> dict[str, list[int]]:
        return {"low": [], "high": high}

    @check("n/high", severity="critical")
    def is_there(value: list[int]) -> bool:
        return bool(value)

    result = materialize([halves, is_there], raise_on_error=False)
    found = {each.name: each.passed for each in result.tasks[0].checks}
    assert found == {"row_count": True, "high.row_count": bool(high), "high.is_there": bool(high)}
    assert result.tasks[0].state.value == ends


@pytest.mark.parametrize(
    ("wanted", "part"),
    [
        (checks.row_count(at_least=1).on(phase="pre"), "name it in checks"),
        (checks.row_count(share_of_previous=0.5), "only a task's first output does"),
    ],
)
def test_unsupported_checks_of_further_outputs_are_refused(wanted: Check, part: str) -> None:
    outputs = [Output(AssetKey("n", "low")), Output(AssetKey("n", "high"), checks=[wanted])]

    @multi_asset(outputs=outputs)
    def halves() -> tuple[int, int]:
        return 1, 2

    with pytest.raises(servo.ManifestInvalid, match=part):
        materialize([halves])


@pytest.mark.parametrize("function", [raises_skip, answers_skip])
def test_skip_skips_downstream_tasks(function: Callable[[], Any]) -> None:
    maybe = asset(name="maybe", may_skip=True)(function)

    @asset
    def after(maybe: int) -> int:
        return maybe

    result = materialize([maybe, after])
    assert [(task.state.value, task.reason) for task in result.tasks] == [
        ("SKIPPED", "SKIPPED_BY_USER_CODE"),
        ("SKIPPED", "UPSTREAM_NOT_SUCCEEDED"),
    ]


@asset(yields_items=True)
def files() -> Items[str]:
    return Items(["a", "b", "c"], value="three files")


@asset(deps={"file": mapped(files)})
def parsed(file: str, context: Context) -> str:
    return f"{file}{context.map_index}"


@asset
def joined(parsed: list[str], files: str) -> str:
    return f"{files}: {' '.join(parsed)}"


def test_items_fan_out_and_join() -> None:
    result = materialize([files, parsed, joined])
    assert result.value(joined) == "three files: a0 b1 c2"
    assert result.task("default/parsed[_map=i:1]").state.value == "SUCCEEDED"

    @asset(name="files", yields_items=True)
    def no_files() -> list[str]:
        return []

    assert materialize([no_files, parsed, joined]).value(joined) == "[]: "


def test_multi_asset_makes_several_assets() -> None:
    @multi_asset(outputs=["low", "high"])
    def halves(numbers: list[int]) -> tuple[list[int], list[int]]:
        return numbers[:1], numbers[1:]

    @asset
    def highest(high: list[int]) -> int:
        return max(high)

    result = materialize([numbers, halves, highest])
    assert (result.value(halves["low"]), result.value("default/high"), result.value(highest)) == ([1], [2, 3], 3)

    for answer in (1, {"one": 1}, {"one": 1, "two": 2, "three": 3}, {1: 1, "two": 2}, "ab"):

        @multi_asset(outputs=["one", "two"])
        def wrong(answer: Any = answer) -> Any:
            return answer

        with pytest.raises(RunFailed, match="makes one, two; return a mapping"):
            materialize([wrong])


@pytest.mark.parametrize("answer", [{"eu/sales": 1, "us/sales": 2, "total": 3}, (1, 2, 3)])
def test_outputs_with_equal_names_need_full_keys(answer: Any) -> None:
    outputs = [Output(AssetKey(*key.split("/"))) for key in ("eu/sales", "us/sales", "all/total")]

    @multi_asset(outputs=outputs)
    def by_region() -> Any:
        return answer

    result = materialize([by_region])
    assert [result.value(output) for output in outputs] == [1, 2, 3]

    @multi_asset(outputs=outputs)
    def unclear() -> Any:
        return {"sales": 1, "total": 3}

    with pytest.raises(RunFailed, match="makes eu/sales, us/sales, total; return a mapping"):
        materialize([unclear])


def test_items_are_json_and_may_be_yielded() -> None:
    @asset(yields_items=True)
    def days() -> Any:
        yield from ["a", "b"]

    @asset(deps={"day": mapped(days)})
    def loaded(day: str) -> str:
        return day.upper()

    assert materialize([days, loaded]).value(loaded) == ["A", "B"]

    @asset(yields_items=True)
    def dates() -> Any:
        return ["a", date(2026, 1, 1)]

    with pytest.raises(RunFailed, match=r"item 1 of `default/dates` is not JSON \(Object of type date"):
        materialize([dates])


def test_errors_name_the_users_line_not_a_librarys() -> None:
    @asset
    def parsed() -> Any:
        return json.loads("{")

    @asset
    def odd() -> Any:
        return lambda: 1

    failed = materialize([parsed, odd], raise_on_error=False).failed
    lines = Path(__file__).read_text().splitlines()
    for task, line in zip(failed, ["@asset", 'return json.loads("{")'], strict=True):
        assert task.error
        file, _, number = task.error.location.rpartition(":")
        assert (Path(file).name, lines[int(number) - 1].strip()) == ("test_materialize.py", line)


@pytest.mark.parametrize("ending", [SystemExit(3), GeneratorExit(), asyncio.CancelledError()])
def test_system_exit_and_alike_fail_only_the_task(ending: BaseException) -> None:
    @asset
    def leaves() -> None:
        raise ending

    result = materialize([leaves, numbers], raise_on_error=False)
    assert [task.state.value for task in result.tasks] == ["FAILED", "SUCCEEDED"]


def test_keyboard_interrupt_ends_the_run() -> None:
    @asset
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        materialize([interrupted])


@asset(partitions=Daily("2026-01-01"))
def sales(context: Context) -> int:
    assert context.partition
    day = context.partition["day"]
    assert isinstance(day, date)
    return day.day


@asset(partitions=Daily("2026-01-01"))
def growth(sales: int) -> int:
    return sales * 10


@asset(partitions=Daily("2026-01-01"), deps={"sales": In(sales, mapping={"day": Window(-2, 0)})})
def window(sales: Mapping[PartitionKey, int]) -> list[int]:
    return list(sales.values())


@asset(partitions=Monthly("2026-01-01"))
def month(sales: Mapping[PartitionKey, int]) -> int:
    return sum(sales.values())


def test_partitions_follow_their_mappings() -> None:
    result = materialize([sales, growth], partition="day=d:2026-01-05", now=NOW)
    assert result.value(growth, "day=d:2026-01-05") == 50
    result = materialize([sales, growth], partition=PartitionKey(day=date(2026, 1, 6)), now=NOW)
    assert result.value(growth, PartitionKey(day=date(2026, 1, 6))) == 60
    whole = materialize([sales, month], partition="month=d:2026-01-01", now=NOW)
    assert whole.value(month, "month=d:2026-01-01") == sum(range(1, 32))
    assert len(whole.tasks) == 32
    few = materialize([sales, window], partition=Slices({"day": Slice(start="2026-01-01", end="2026-01-04")}), now=NOW)
    assert few.value(window, "day=d:2026-01-04") == [2, 3, 4]
    assert few.value(window, "day=d:2026-01-01") == [1]
    newest = materialize([sales], partition=LatestPartitions(2), now=NOW)
    assert [str(key) for _, key in newest.values] == ["day=d:2026-01-30", "day=d:2026-01-31"]
    assert len(materialize([sales], partition=AllPartitions(), now=NOW).tasks) == 31


def test_inputs_may_depend_on_the_partition() -> None:
    made = materialize([growth], inputs={sales: lambda key: key["day"].day + 1}, partition="day=d:2026-01-05", now=NOW)
    assert made.value(growth, "day=d:2026-01-05") == 60


def test_several_dimensions_and_dynamic_sets() -> None:
    @asset(
        partitions=Partitions(hour=Hourly("2026-01-31T22:00:00Z"), region=Static("eu", "us"), shop=servo.Dynamic("s"))
    )
    def cell(context: Context) -> str:
        return str(context.partition)

    for shops in (["main"], "main"):
        made = materialize([cell], partition=AllPartitions(), partition_sets={"s": shops}, now=NOW)
        assert [task.key for task in made.tasks] == [
            f"default/cell[hour=t:2026-01-31T{hour}:00:00Z,region=s:{region},shop=s:main]:materialize"
            for hour in ("22", "23")
            for region in ("eu", "us")
        ]


@pytest.mark.parametrize(
    ("partition", "sentence"),
    [
        (None, "`default/growth` has partitions; say which are meant"),
        ("day=d:2026-02-01", "is not over yet"),
        ("day=d:2025-12-31", "lies before the first partition"),
        ("hour=i:1", "does not name the dimensions day"),
        ("yesterday", "is not a dimension"),
    ],
)
def test_nonexistent_partitions_are_refused(partition: str | None, sentence: str) -> None:
    with pytest.raises(InvalidValue, match=sentence):
        materialize([sales, growth], partition=partition, now=NOW)
    with pytest.raises(InvalidValue, match="none of the selected assets has partitions"):
        materialize([numbers], partition="day=d:2026-01-01")


@check("default/rows", severity="critical")
def enough(rows: list[dict[str, int]]) -> CheckOutcome:
    return CheckOutcome(len(rows) > 1, "too few")


@pytest.mark.parametrize(
    ("rows", "quarantine", "state", "after", "flagged"),
    [
        ([{"id": 1}, {"id": 2}], False, "SUCCEEDED", "SUCCEEDED", False),
        ([{"id": 1}, {"id": 1}], False, "SUCCEEDED", "SUCCEEDED", True),
        ([{"id": 1}], False, "FAILED", "SKIPPED", False),
        ([{"id": 1}], True, "SUCCEEDED", "SKIPPED", False),
    ],
)
def test_failed_checks_gate_downstream_tasks(
    rows: list[dict[str, int]], quarantine: bool, state: str, after: str, flagged: bool
) -> None:
    @asset(
        name="rows",
        quarantine=quarantine,
        checks=[
            checks.unique("id"),
            checks.not_null("id").on(severity="critical"),
            checks.sql("SELECT * FROM output WHERE id < 0"),
        ],
    )
    def made() -> list[dict[str, int]]:
        return rows

    @asset
    def count(rows: list[dict[str, int]]) -> int:
        return len(rows)

    result = materialize([made, count, enough], raise_on_error=False)
    task = result.task("default/rows")
    assert (task.state.value, result.task("default/count").state.value, result.flagged) == (state, after, flagged)
    assert [found.name for found in task.checks] == ["unique_id", "not_null_id", "sql", "enough"]
    if state == "FAILED":
        assert result.error == "default/rows:materialize: the check `enough` failed: too few"


def test_input_check_runs_before_user_code() -> None:
    ran: list[int] = []

    @asset
    def orders() -> list[int]:
        return []

    @asset(quarantine=True, checks=[checks.row_count(at_least=1).on(severity="critical", phase="pre")])
    def total(orders: list[int]) -> int:
        ran.append(sum(orders))
        return ran[0]

    result = materialize([orders, total], raise_on_error=False)
    assert (result.error, ran) == ("default/total:materialize: the check `row_count` failed: has 0 rows", [])


def test_unexecutable_check_fails_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    @asset(checks=[checks.sql("SELECT 1").on(severity="info")])
    def made() -> int:
        raise AssertionError("must not run")

    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    (task,) = materialize([made], raise_on_error=False).tasks
    assert task.error is not None
    assert (task.error.category.name, task.reason) == ("CONFIGURATION", "EXECUTION_FAILED")
    assert task.error.message.startswith("the check `sql` needs pyarrow, which is not installed: pip install")


def test_input_check_without_inputs_is_refused_with_location() -> None:
    @asset(checks=[checks.row_count(at_least=1).on(phase="pre")])
    def alone() -> int:
        raise AssertionError("must not run")

    with pytest.raises(servo.ManifestInvalid, match=r"`row_count` checks inputs .* has none; make it phase post"):
        materialize([alone])


def test_broken_check_does_not_pass() -> None:
    @asset(checks=[checks.not_null("missing").on(severity="critical")])
    def made() -> int:
        return 1

    result = materialize([made], raise_on_error=False)
    (found,) = result.tasks[0].checks
    assert (found.passed, found.errored, result.succeeded) == (False, True, False)


def test_check_with_unencodable_result_does_not_pass() -> None:
    @asset
    def made() -> int:
        return 1

    @check(made, severity="critical")
    def careless(value: int) -> CheckOutcome:
        return CheckOutcome(value == 1, "fine", metadata=cast(Any, None))

    result = materialize([made, careless], raise_on_error=False)
    (found,) = result.tasks[0].checks
    assert (found.passed, found.errored, result.succeeded) == (False, True, False)
    assert found.outcome.message.startswith("the check broke: InvalidValue: its metadata is a NoneType")


def test_configuration_and_secrets_reach_the_function() -> None:
    @asset(config={"rate": 0.5, "currency": "eur"}, secrets=[servo.Secret.env("KEY")])
    def configured(context: Context) -> tuple[object, ...]:
        return context.config["rate"], context.config["currency"], context.secrets["KEY"]

    assert materialize([configured], config={"rate": 2}, secrets={"KEY": "s3"}).value(configured) == (2, "eur", "s3")


def test_broken_definitions_are_refused_before_anything_runs() -> None:
    @asset
    def lost(nothing: int) -> int:
        raise AssertionError(f"must not run with {nothing}")

    with pytest.raises(servo.ManifestInvalid, match="the parameter `nothing` names no asset"):
        materialize([lost])
