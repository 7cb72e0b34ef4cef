"""Local runs pass and return the same values as a worker."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from pathlib import Path
from typing import Any

import pandas
import pyarrow
import pytest

from servo import (
    Context,
    Daily,
    In,
    Items,
    PartitionKey,
    Partitions,
    Retry,
    Secret,
    Window,
    asset,
    mapped,
    materialize,
    source,
)
from servo.data.errors import AlreadyWritten
from servo.data.folders import Folder, open_folder
from servo.data.memory import Memory
from servo.model.categories import ErrorCategory
from servo.v1.common_pb2 import SecretRef
from servo.worker.secrets import SecretNotFound, read_all

DAYS = Daily("2026-01-01")


@asset
def numbers() -> list[int]:
    return [1, 2, 3]


def test_readers_get_independent_copies() -> None:
    @asset(deps={"read": numbers})
    def greedy(read: list[int]) -> int:
        read.clear()
        return 0

    @asset(deps={"read": numbers, "given": In("default/given")})
    def zealous(read: list[int], given: list[int]) -> list[int]:
        given.append(4)
        return [*read, *given]

    given = [9]
    result = materialize([greedy, zealous, numbers], inputs={"default/given": given})
    assert (result.value(zealous), result.value(numbers), given) == ([1, 2, 3, 9, 4], [1, 2, 3], [9])


@asset
def table() -> pyarrow.Table:
    return pyarrow.table({"a": [1, 2]})


@asset
def frame_of(table: pandas.DataFrame, given: pandas.DataFrame) -> str:
    return f"{type(table).__module__.partition('.')[0]} {list(table['a'])} {list(given['b'])}"


def test_frame_is_converted_to_the_annotated_kind() -> None:
    result = materialize([table, frame_of], inputs={"given": pyarrow.table({"b": [3]})})
    assert result.value(frame_of) == "pandas [1, 2] [3]"


def test_unstorable_value_fails() -> None:
    @asset
    def lock() -> Any:
        return threading.Lock()

    result = materialize([lock], raise_on_error=False)
    (task,) = result.failed
    assert task.error
    assert (task.error.type, "a value of type lock cannot be stored" in task.error.message) == ("CannotStore", True)


class Denied:
    def store(self, value: int, place: Any) -> None:
        raise PermissionError(f"the database does not take {value} into {place.uri}")

    def load(self, place: Any) -> int:
        return len(place.uri)


def test_errors_of_a_user_io_are_user_code_errors() -> None:
    """The worker's counterpart is in test_child_io.py."""

    @asset(io=Denied, retry=Retry(attempts=5, never_on=(PermissionError,)))
    def denied() -> int:
        return 1

    (task,) = materialize([denied], raise_on_error=False).failed
    assert task.error
    assert (task.error.category, task.error.type, task.attempts) == (ErrorCategory.USER_CODE, "PermissionError", 1)
    assert task.error.location.rpartition(":")[0].endswith("test_as_on_a_worker.py")


@asset(yields_items=True)
def pairs() -> Items[Any]:
    return Items([("a", 1), {"b": 2}])


@asset(deps={"pair": mapped(pairs)})
def shown(pair: Any) -> str:
    return repr(pair)


def test_items_pass_through_json() -> None:
    assert materialize([pairs, shown]).value(shown) == ["['a', 1]", "{'b': 2}"]


@pytest.mark.parametrize(
    ("items", "part"), [([object()], "not JSON serializable"), (["x" * 1_000] * 100, "yield fewer or smaller items")]
)
def test_items_that_a_worker_could_not_report_fail(items: list[Any], part: str) -> None:
    @asset(yields_items=True, retry=5)
    def many() -> list[Any]:
        return items

    (task,) = materialize([many], raise_on_error=False).failed
    assert task.error
    assert part in task.error.message
    assert (task.error.category, task.attempts) == (ErrorCategory.USER_CODE, 1)


def test_timeout_fails_the_task() -> None:
    over = threading.Event()

    @asset(timeout=0.05, retry=Retry(attempts=2))
    def slow(context: Context) -> int:
        if context.attempt == 1:
            over.wait()
        return context.attempt

    @asset(timeout=0.05, retry=1)
    def slower() -> None:
        over.wait()

    result = materialize([slow, slower], raise_on_error=False)
    over.set()
    assert (result.value(slow), result.task("default/slow").attempts) == (2, 2)
    (task,) = result.failed
    assert task.error
    assert (task.error.category, task.reason) == (ErrorCategory.TIMEOUT, "TIMED_OUT")
    assert task.error.message == "took longer than 0.05 s"


def test_system_exit_fails_the_task() -> None:
    @asset
    def shutdown() -> None:
        sys.exit(3)

    (task,) = materialize([shutdown], raise_on_error=False).failed
    assert task.error
    assert (task.error.type, task.error.category) == ("SystemExit", ErrorCategory.USER_CODE)


def test_asset_gets_only_its_declared_secrets() -> None:
    @asset(secrets=[Secret.env("KEY", "SHOP_KEY")])
    def one(context: Context) -> dict[str, str]:
        return dict(context.secrets)

    @asset
    def none(context: Context) -> dict[str, str]:
        return dict(context.secrets)

    result = materialize([one, none], secrets={"KEY": "a", "OTHER": "b"})
    assert (result.value(one), result.value(none)) == ({"KEY": "a"}, {})


def test_missing_secret_fails_before_user_code(monkeypatch: pytest.MonkeyPatch) -> None:
    @asset(secrets=[Secret.env("KEY"), Secret.env("OTHER")], retry=5)
    def locked() -> None:
        raise AssertionError("must not run")

    (task,) = materialize([locked], secrets={"KEY": "a"}, raise_on_error=False).failed
    assert task.error
    assert (task.error.category, task.attempts) == (ErrorCategory.CONFIGURATION, 1)
    begin, _, remedy = task.error.message.partition(":")
    assert remedy == " give it to materialize, secrets={'OTHER': …}"
    # The worker's message begins with the same text.
    monkeypatch.delenv("OTHER", raising=False)
    with pytest.raises(SecretNotFound, match=f"^{begin}: set OTHER"):
        asyncio.run(read_all([SecretRef(name="OTHER", provider="env", path="OTHER")]))


class Shelves:
    """A user's io class that writes into subfolders, some with equal names."""

    def store(self, value: dict[str, list[str]], folder: Any) -> None:
        folder.create("names.json", json.dumps(list(value)).encode())
        for name, lines in value.items():
            with folder.below("shelves").below(name).writing("data.txt") as file:
                file.write("\n".join(lines).encode())

    def load(self, folder: Any) -> dict[str, list[str]]:
        with folder.reading("names.json") as file:
            names = json.load(file)
        return {name: self._lines(folder.below("shelves").below(name)) for name in names}

    def _lines(self, shelf: Any) -> list[str]:
        with shelf.reading("data.txt") as file:
            return str(file.read().decode()).split("\n")


def test_io_can_write_into_subfolders() -> None:
    @asset(io=Shelves)
    def stock() -> dict[str, list[str]]:
        return {"a": ["x", "y"], "b": ["z"]}

    @asset
    def counted(stock: dict[str, list[str]]) -> dict[str, int]:
        return {name: len(lines) for name, lines in stock.items()}

    assert materialize([stock, counted]).value(counted) == {"a": 2, "b": 1}


@pytest.mark.parametrize("kind", ["memory", "directory"])
def test_memory_folder_behaves_like_a_directory(kind: str, tmp_path: Path) -> None:
    folder: Folder = Memory() if kind == "memory" else open_folder(f"file://{tmp_path}/")
    below = folder.below("x")
    below.create("data", b"123")
    folder.create("data", b"1")
    folder.below("xy").create("data", b"12")
    assert (folder.size(), below.size(), folder.below("x").below("none").size()) == (6, 3, 0)
    with folder.below("x").reading("data") as file:
        assert file.read() == b"123"
    with pytest.raises(AlreadyWritten, match="x/data exists already"):
        folder.below("x").create("data", b"other")
    with pytest.raises(FileNotFoundError), folder.below("y").reading("data"):
        pass


class Feed:
    def load(self, partition: PartitionKey | None) -> str:
        return f"the feed of {partition}"


def test_source_is_loaded_by_its_io_unless_given() -> None:
    feed = source("feed", partitions=DAYS, io=Feed)

    @asset(partitions=DAYS, deps={"feed": feed, "days": In(feed, mapping={"day": Window(-1, 0)})})
    def fed(feed: str, days: dict[PartitionKey, str]) -> list[str]:
        return [feed, *days.values()]

    day = "day=d:2026-01-02"
    yesterday, today = "the feed of day=d:2026-01-01", f"the feed of {day}"
    assert materialize([feed, fed], partition=day).value(fed, day) == [today, yesterday, today]
    assert materialize([fed], partition=day).value(fed, day) == [today, yesterday, today]
    assert materialize([fed], partition=day, inputs={feed: "mine"}).value(fed, day) == ["mine"] * 3


@asset(partitions=DAYS)
def sold() -> int:
    return 1


@asset(partitions=Daily("2026-02-01"), deps={"sold": sold})
def later(sold: int) -> int:
    return sold + 1


@asset(partitions=Partitions(date=DAYS), deps={"sold": sold})
def renamed(sold: int) -> int:
    return sold + 2


@asset(partitions=DAYS, deps={"before": In(sold, mapping={"day": Window(-1, -1)})})
def growth(before: dict[PartitionKey, int]) -> int:
    return len(before)


def test_paired_partitions_give_one_value_with_different_starts() -> None:
    day = "day=d:2026-02-03"
    assert materialize([sold, later], partition=day).value(later, day) == 2
    date = "date=d:2026-02-03"
    assert materialize([renamed], partition=date, inputs={"default/sold": 5}).value(renamed, date) == 7


def test_window_before_the_start_is_empty() -> None:
    for day, count in [("day=d:2026-01-01", 0), ("day=d:2026-01-02", 1)]:
        assert materialize([growth], partition=day, inputs={"default/sold": 5}).value(growth, day) == count


def test_missing_upstream_partition_reads_nothing() -> None:
    @asset(partitions=Daily("2025-01-01"), deps={"sold": sold})
    def earlier(sold: int) -> int:
        return sold

    result = materialize([earlier], partition="day=d:2025-06-01", inputs={"default/sold": 5}, raise_on_error=False)
    (task,) = result.failed
    assert task.error
    assert "`default/sold` has no partition that matches this one" in task.error.message
