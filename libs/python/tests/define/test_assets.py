"""Definitions behave like their functions and report mistakes early."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

import servo
from servo import Context, Daily, InvalidValue, PartitionKey, asset, check, multi_asset, schedule, sensor
from servo.define.durations import Duration, read_duration
from servo.define.settings import Resources, Retry


@asset
def numbers() -> list[int]:
    """Some numbers."""
    return [1, 2, 3]


@asset(namespace="math", partitions=Daily("2026-01-01"))
def total(numbers: list[int], context: Context) -> int:
    return sum(numbers) + (context.partition == PartitionKey(day=date(2026, 1, 2)))


@multi_asset(outputs=["low", "high"], namespace="math")
def halves(numbers: list[int]) -> dict[str, list[int]]:
    return {"low": numbers[:1], "high": numbers[1:]}


@check(total, severity="critical")
def is_positive(total: int) -> bool:
    return total > 0


@sensor(interval="1m")
def new_files(cursor: str) -> servo.SensorResult:
    return servo.SensorResult(cursor=cursor + "x", skip_reason="nothing new")


@schedule("0 6 * * *", zone="Europe/Berlin")
def nightly() -> servo.Run:
    return servo.Run(total, partitions=servo.LatestPartitions())


def test_definitions_are_called_like_functions() -> None:
    assert numbers() == [1, 2, 3]
    assert total(numbers(), context=Context(partition=PartitionKey(day=date(2026, 1, 2)))) == 7
    assert halves(numbers())["high"] == [2, 3]
    assert is_positive(1)
    assert new_files("a").cursor == "ax"
    assert (total.__name__, numbers.__doc__) == ("total", "Some numbers.")


def test_definitions_have_keys_and_locations() -> None:
    assert str(numbers.key) == "default/numbers"
    assert [str(output.key) for output in halves.outputs] == ["math/low", "math/high"]
    assert str(halves["high"].key) == "math/high"
    with pytest.raises(KeyError, match="makes no `middle`; it makes low, high"):
        halves["middle"]
    line = Path(__file__).read_text().splitlines()[total.location.line - 1]
    assert line == '@asset(namespace="math", partitions=Daily("2026-01-01"))'
    assert str(total.location).endswith(f"test_assets.py:{total.location.line}")
    assert (nightly.name, nightly.run.selection) == ("nightly", ("math/total",))


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("90s", 90), ("5m", 300), ("1h 30m", 5400), ("2d", 172_800), ("250ms", 0.25), (7, 7), (timedelta(hours=1), 3600)],
)
def test_durations_are_parsed(given: Duration, seconds: float) -> None:
    assert read_duration(given) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "wrong", ["", "5", "5 minutes", "-3s", "1h,2m", True, None, math.inf, math.nan, 10**20, "99999999999d"]
)
def test_invalid_durations_are_refused(wrong: Duration) -> None:
    with pytest.raises(InvalidValue, match="is not a duration"):
        read_duration(wrong)


def test_retry_accepts_short_and_long_forms() -> None:
    retry = Retry.of(5, (ConnectionError, "timeout", "HttpError"))
    assert retry is not None
    assert (retry.attempts, retry.types, [c.name for c in retry.categories]) == (
        5,
        ["ConnectionError", "HttpError"],
        ["TIMEOUT"],
    )
    assert Retry.of(None, ()) is None
    with pytest.raises(InvalidValue, match="attempts is 0"):
        Retry(attempts=0)


def test_single_value_is_accepted_as_a_list() -> None:
    assert [category.name for category in Retry(on="timeout").categories] == ["TIMEOUT"]
    assert Retry(on=ConnectionError, never_on=ValueError) == Retry(on=[ConnectionError], never_on=[ValueError])
    assert Retry(never_on="HttpError").never_types == ["HttpError"]
    assert Resources(capabilities="gpu").capabilities == ("gpu",)
    assert servo.Slice(values="eu") == servo.Slice(values=["eu"])
    assert servo.Table({"eu": "DE", 1: 2}).lines == [("eu", ["DE"]), ("1", ["2"])]
    assert asset(retry_on=ConnectionError)(numbers.function).settings.retry_on == (ConnectionError,)


@pytest.mark.parametrize(
    ("made", "options", "sentence"),
    [
        (multi_asset, {"outputs": "high"}, "outputs is one text; write a list of names and outputs"),
        (multi_asset, {"outputs": [5]}, "outputs holds one int; write a list of names and outputs"),
        (servo.Items, {"items": "file.csv"}, "items is one text; write a list of items"),
        (servo.SensorResult, {"runs": "now"}, "runs is one text; write a list of run requests"),
        (servo.SensorResult, {"runs": servo.RunRequest("k")}, "runs is one RunRequest; write a list of run requests"),
        (Retry, {"on": 5}, "on is one int; write a list of categories, exception classes and their names"),
        (Retry, {"never_on": [None]}, "never_on holds None; write a list of categories, exception classes and their"),
        (Resources, {"capabilities": {"gpu": 1}}, "capabilities is one dict; write a list of texts"),
        (servo.Slice, {"values": [1]}, "values holds one int; write a list of texts"),
    ],
)
def test_text_is_not_split_into_letters(made: Callable[..., object], options: Any, sentence: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        made(**options)
    assert str(raised.value).startswith(sentence)


@pytest.mark.parametrize(
    ("made", "options", "sentence"),
    [
        (
            servo.check,
            {"severity": "fatal"},
            'severity is \'fatal\'; write "info" or "warning" or "error" or "critical"',
        ),
        (servo.check, {"phase": "late"}, 'phase is \'late\'; write "pre" or "post"'),
        (Retry, {"backoff": "expo"}, 'backoff is \'expo\'; write "exponential" or "linear" or "constant"'),
        (Retry, {"attempts": "3"}, "attempts is '3'; write a whole number"),
        (Retry, {"delay": math.inf}, "delay: `inf` is not a duration: write seconds"),
        (servo.schedule, {"cron": "* * * * *", "gap": "shft"}, 'gap is \'shft\'; write "shift" or "skip"'),
        (
            servo.schedule,
            {"cron": "* * * * *", "overlap": "none"},
            'overlap is \'none\'; write "first" or "last" or "both"',
        ),
        (
            servo.Webhook,
            {"secret": servo.Secret.env("K"), "scheme": "gitlab"},
            'scheme is \'gitlab\'; write "standard" or "github"',
        ),
        (
            servo.Secret,
            {"name": "k", "provider": "vault", "path": "p"},
            'provider is \'vault\'; write "env" or "gcp-secret-manager"',
        ),
        (servo.checks.row_count, {"at_most": 2**64}, "at_most is 18446744073709551616; write a whole number from 0 to"),
        (
            servo.checks.row_count,
            {"share_of_previous": "0.9"},
            "share_of_previous is '0.9'; write a number such as 0.9",
        ),
        (servo.checks.row_count, {"share_of_previous": math.inf}, "share_of_previous is inf; write a number such as"),
        (servo.checks.schema, {"columns": {"id": int}}, "columns['id'] is <class 'int'>; write a text"),
        (servo.checks.sql, {"query": None}, "query is None; write a text"),
        (servo.checks.sql, {"query": " "}, "query is empty; write a SELECT"),
        (servo.checks.row_count, {}, "row_count has no limit; give at_least, at_most or share_of_previous"),
        (servo.checks.row_count, {"at_least": 5, "at_most": 1}, "at_least is 5 and at_most is 1; no number of rows is"),
        (servo.checks.not_null, {}, 'not_null looks at no column; name some: not_null("id")'),
        (servo.checks.unique, {}, 'unique looks at no column; name some: unique("id")'),
        (servo.Partitions, {}, "Partitions has no dimension; write Partitions(day="),
        (Resources, {"cpu": "2"}, "cpu is '2'; write a number such as 0.9"),
        (Resources, {"gpus": 0.5}, "gpus is 0.5; write a whole number"),
        (Resources, {"memory": 1.5}, "`1.5` is not a size: write bytes, or a text such as 512MiB"),
        (Resources, {"memory": -1}, "memory is -1; write a whole number from 0 to"),
        (servo.Window, {"start": "-6"}, "start is '-6'; write a whole number"),
        (servo.LatestPartitions, {"count": -1}, "count is -1; write a whole number from 0 to"),
        (servo.Output, {"key": "high"}, "key is 'high'; write AssetKey(namespace, name)"),
        (servo.Run, {"partitions": 5}, "partitions is one int; write a list of partition keys"),
    ],
)
def test_wrong_values_are_explained(made: Callable[..., Any], options: Any, sentence: str) -> None:
    def written() -> servo.Run:
        return servo.Run("*")

    with pytest.raises(InvalidValue) as raised:
        # Decorators validate their options when they are applied.
        made(**options)(written)
    assert str(raised.value).startswith(sentence)


def test_resources_accept_units() -> None:
    resources = Resources(cpu=0.5, memory="512MiB")
    assert (resources.cpu_millicores, resources.memory_bytes) == (500, 536_870_912)
    with pytest.raises(InvalidValue, match="is not a size"):
        Resources(memory="lots")


def test_invalid_definitions_are_refused_at_their_line() -> None:
    with pytest.raises(InvalidValue, match="the name `Total` of an asset is refused"):
        asset(name="Total")(lambda: None)
    with pytest.raises(InvalidValue, match='isolation is \'cold\'; write "fresh" or "warm"'):
        asset(name="a", isolation="cold")(lambda: None)  # type: ignore[call-overload]
    with pytest.raises(InvalidValue, match='isolation is None; write "fresh" or "warm"'):
        asset(name="a", isolation=None)(lambda: None)  # type: ignore[call-overload]
    with pytest.raises(InvalidValue, match="are of several types"):
        servo.Static("a", 1)
    with pytest.raises(InvalidValue, match="must return a Run"):
        schedule("0 6 * * *")(lambda: "everything")  # type: ignore[arg-type, return-value]


async def _later() -> int:
    return 1


async def _many_later() -> Any:
    yield 1


def _one_by_one() -> Any:
    yield 1


@pytest.mark.parametrize(
    ("decorate", "function", "sentence"),
    [
        (asset, _later, "`_later` is async and would never be awaited; write a def that calls it with asyncio.run"),
        (asset, _many_later, "`_many_later` is async"),
        (servo.check("a/b"), _later, "`_later` is async"),
        (asset, _one_by_one, "@asset calls `_one_by_one`, which yields; return a value, or set yields_items=True"),
        (multi_asset(outputs=["a", "b"]), _one_by_one, "@multi_asset calls `_one_by_one`, which yields; return a mapp"),
    ],
)
def test_coroutines_and_generators_are_refused(decorate: Any, function: Any, sentence: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        decorate(function)
    location, _, text = str(raised.value).partition(": ")
    assert (Path(location).name.partition(":")[0], text.startswith(sentence)) == ("test_assets.py", True), raised.value


@pytest.mark.parametrize(
    ("decorator", "options", "hint"),
    [
        (asset, {"retries": 3}, "@asset has no option `retries`; did you mean `retry`?"),
        (asset, {"io_manager_key": "x"}, "@asset has no option `io_manager_key`; there are automation, checks, "),
        (multi_asset, {"outputs": ["a"], "name": "x"}, "@multi_asset has no option `name`"),
    ],
)
def test_unknown_options_are_refused(decorator: Any, options: dict[str, Any], hint: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        decorator(**options)
    assert hint in str(raised.value)


def test_every_public_name_exists() -> None:
    assert [name for name in servo.__all__ if getattr(servo, name, None) is None] == []
    with pytest.raises(AttributeError, match="has no attribute 'assset'"):
        servo.assset  # noqa: B018


def test_defining_assets_imports_no_protobuf() -> None:
    names = "Daily, Retry, Run, asset, check, checks, schedule, sensor"
    listed = "[m for m in sys.modules if m.split('.')[0] in ('grpc', 'google', 'pyarrow', 'duckdb')]"
    code = f"import sys; from servo import {names}; print({listed})"
    seen = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert seen.strip() == "[]"
