"""Checks on every form of a table, and their combined effect."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

import numpy
import pandas
import polars
import pyarrow
import pyarrow.compute
import pytest

from servo import CheckOutcome, checks
from servo.define.checks import Check, Code, Severity
from servo.execute import tables
from servo.execute.quality import CannotCheck, CheckResult, Read, gating, prepare, run_post, run_pre

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
COLUMNS: dict[str, list[Any]] = {"id": [1, 2, 2], "note": ["a", None, "c"], "at": [datetime(2026, 1, 31)] * 3}
ROWS = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
FORMS: dict[str, Callable[[], Any]] = {
    "rows": lambda: ROWS,
    "columns": lambda: COLUMNS,
    "pandas": lambda: pandas.DataFrame(COLUMNS),
    "polars": lambda: polars.DataFrame(COLUMNS),
    "pyarrow": lambda: pyarrow.table(COLUMNS),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("check", "passed", "message"),
    [
        (checks.row_count(at_least=3, at_most=3), True, ""),
        (checks.row_count(at_least=4), False, "has 3 rows"),
        (checks.not_null("id"), True, ""),
        (checks.not_null("id", "note"), False, "1 value is empty"),
        (checks.unique("id"), False, "1 row repeats another"),
        (checks.unique("id", "note"), True, ""),
        (checks.max_age("at", "12h"), True, ""),
        (checks.max_age("at", "11h"), False, "is too old"),
        (checks.schema({"id": "int64", "note": "string?"}, allow_extra=True), True, ""),
        (
            checks.schema({"id": "string", "note": "string", "extra": "int64"}),
            False,
            "`id` is int64, not string; `note` has 1 empty values; `extra` is missing; at should not be there",
        ),
        (checks.sql("SELECT * FROM output WHERE id > 2"), True, ""),
        (checks.sql("SELECT id FROM output WHERE id = 2"), False, "2 rows, the first is (2,)"),
    ],
)
def test_every_check_reads_every_kind_of_table(form: str, check: Check, passed: bool, message: str) -> None:
    found = run_post(check, FORMS[form](), NOW)
    assert (found.passed, found.outcome.message, found.errored) == (passed, message, False)


@pytest.mark.parametrize(
    ("check", "value", "part"),
    [
        (checks.not_null("nite"), ROWS, "there is no column `nite`; there are id, note, at"),
        (checks.row_count(at_least=1), 7, "a value of type int has no rows"),
        (checks.schema({}), 7, "a value of type int is not a table"),
        (checks.unique("id"), [1, 2], "a value of type list has no columns"),
        (checks.sql("SELEC"), ROWS, "ParserException"),
        (checks.max_age("id", "1h"), ROWS, "1 is not a time"),
        (checks.sql("-- nothing"), ROWS, "its SQL has no result; write a SELECT"),
        (checks.sql("FROM output"), [{1: 2}], "the column 1 has no text for a name"),
    ],
)
def test_broken_check_fails_with_its_reason(check: Check, value: Any, part: str) -> None:
    found = run_post(check, value, NOW)
    assert (found.passed, found.errored) == (False, True)
    assert part in found.outcome.message


@pytest.mark.parametrize(
    ("rows", "previous", "passed", "expected"),
    [
        (9, 10, True, "at least 9"),
        (8, 10, False, "at least 9"),
        # Fractions of a row are rounded up.
        (9, 11, False, "at least 10"),
        (10, 11, True, "at least 10"),
        (0, 0, True, "at least 0"),
        (50, 10, True, "at least 9"),
    ],
)
def test_rows_are_compared_with_the_previous_version(rows: int, previous: int, passed: bool, expected: str) -> None:
    found = run_post(checks.row_count(share_of_previous=0.9), [0] * rows, NOW, previous)
    assert (found.passed, found.outcome.actual, found.outcome.expected) == (passed, str(rows), expected)
    assert found.outcome.message == ("" if passed else f"has {rows} rows, the version before {previous}")


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"at_least": 5}, "at least 5"),
        ({"at_most": 1}, "at most 1"),
        ({"at_least": 5, "at_most": 9}, "5 to 9"),
    ],
)
def test_row_limits_are_described(limits: dict[str, int], expected: str) -> None:
    assert run_post(checks.row_count(**limits), ROWS, NOW).outcome.expected == expected


def test_times_with_a_zone_are_shown() -> None:
    at = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
    zones = pyarrow.table({"at": pyarrow.array([at], pyarrow.timestamp("us", "UTC"))})
    finer = pyarrow.table({"at": pyarrow.array([1], pyarrow.timestamp("ns"))})
    found = run_post(checks.sql("FROM output"), zones, NOW)
    assert not found.errored
    assert "2026, 1, 31, 12, 0, 0, 123456" in found.outcome.message
    assert "1970, 1, 1, 0, 0" in run_post(checks.sql("FROM output"), finer, NOW).outcome.message


@pytest.mark.parametrize("make", [list, polars.DataFrame])
def test_nested_cells_are_compared(make: Callable[[Any], Any]) -> None:
    found = run_post(checks.unique("tags"), make([{"tags": ["a"]}, {"tags": ["b"]}, {"tags": ["a"]}]), NOW)
    assert (found.errored, found.outcome.message) == (False, "1 row repeats another")


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_check_error_without_message_does_not_end_the_task() -> None:
    def look(_: Any) -> bool:
        raise Speechless

    found = run_post(Check("look", Code(look)), 1, NOW)
    assert (found.passed, found.errored) == (False, True)
    assert "Speechless, whose message cannot be computed: RuntimeError" in found.outcome.message


def test_first_version_has_no_previous_rows() -> None:
    found = run_post(checks.row_count(at_least=1, share_of_previous=0.9), [1], NOW)
    assert (found.passed, found.outcome.message) == (True, "there is no previous version to compare with")


@pytest.mark.parametrize(("kind", "rows"), [("pandas", 100_000), ("polars", 100_000), ("pyarrow", 10_000_000)])
def test_many_rows_are_checked_without_an_object_per_cell(
    kind: tables.Kind, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> list[Any]:
        raise AssertionError("every cell was made an object")

    monkeypatch.setattr(tables, "column", refused)
    ids = pyarrow.array(numpy.arange(rows))
    table = pyarrow.table({"id": ids, "again": pyarrow.compute.divide(ids, 2)})
    wanted = [checks.unique("again"), checks.unique("id", "again"), checks.not_null("id", "again")]
    value = tables.as_kind(table, kind)
    assert [run_post(each, value, NOW).outcome.actual for each in wanted] == [str(rows // 2), "0", "0"]


def test_nulls_and_nans_are_counted_in_every_frame() -> None:
    cells = [None, float("nan"), 1.0, 1.0]
    wanted = [checks.not_null("a"), checks.unique("a")]
    for frame, empty in [(pandas.DataFrame({"a": cells}), "2"), (pyarrow.table({"a": cells}), "1")]:
        assert run_post(wanted[0], frame, NOW).outcome.actual == empty
    mixed = pandas.DataFrame({"a": [1, "x", None, None]})
    assert [run_post(each, mixed, NOW).outcome.actual for each in wanted] == ["2", "1"]
    nested = pyarrow.table({"a": [[1], None]})
    assert run_post(wanted[0], nested, NOW).outcome.actual == "1"
    words = pyarrow.table({"a": ["x", "y", "x"]})
    encoded = words.set_column(0, "a", words["a"].dictionary_encode())
    assert run_post(wanted[1], encoded, NOW).outcome.actual == "1"


def test_data_without_times_is_not_fresh() -> None:
    found = run_post(checks.max_age("at", "1h"), [{"at": None}], NOW)
    assert (found.passed, found.outcome.message) == (False, "has no times")


def pre(check: Check, **inputs: Read) -> CheckResult:
    check = check.on(phase="pre")
    prepare([check], list(inputs))
    return run_pre([check], inputs, NOW)[0]


def test_inputs_are_checked_by_name_by_view_and_by_partition() -> None:
    days = Read({"day=1": [{"id": 1}], "day=2": []}, several=True)
    found = pre(checks.row_count(at_least=1), orders=days)
    assert (found.phase, found.passed, found.outcome.message) == ("pre", False, "day=2: has 0 rows")
    unknown = "SELECT id FROM orders WHERE id NOT IN (SELECT id FROM known)"
    assert pre(checks.sql(unknown), orders=days, known=Read(ROWS)).passed
    missing = pre(checks.sql(unknown), orders=days, known=Read([{"id": 7}]))
    assert missing.outcome.message == "1 row, the first is (1,)"

    def known_only(known: list[Any]) -> bool:
        return known is ROWS

    def anything(rows: list[Any]) -> bool:
        return len(rows) == 3

    assert pre(Check("c", checks.Code(known_only)), orders=days, known=Read(ROWS)).passed
    assert pre(Check("c", checks.Code(anything)), orders=Read(ROWS)).passed
    with pytest.raises(CannotCheck, match="has parameters that are not inputs of the asset; use a, b"):
        pre(Check("c", checks.Code(anything)), a=days, b=days)
    with pytest.raises(CannotCheck, match="checks one input, and the asset reads a, b; write it as SQL"):
        pre(checks.row_count(at_least=1), a=days, b=days)


@pytest.mark.parametrize("package", ["duckdb", "pyarrow"])
def test_missing_package_names_the_remedy(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.delitem(sys.modules, package, raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == package else object())
    remedy = rf"`sql` needs {package}, which is not installed: pip install 'servo-orchestrator\[tables\]' where"
    with pytest.raises(CannotCheck, match=remedy):
        prepare([checks.sql("SELECT 1")], [])


@pytest.mark.parametrize(
    ("failed", "quarantine", "meaning"),
    [
        ([], True, "ALLOW"),
        (["info", "warning"], True, "ALLOW"),
        (["warning", "error"], True, "WARN"),
        (["error", "critical"], False, "BLOCK"),
        (["error", "critical"], True, "QUARANTINE"),
    ],
)
def test_the_worst_failure_decides(failed: list[Severity], quarantine: bool, meaning: str) -> None:
    broken = [Check(each, checks.Code(lambda _: False), each) for each in failed]
    fine = Check("fine", checks.Code(lambda _: True), "critical")
    found = [run_post(each, None, NOW) for each in (fine, *broken)]
    assert gating(found, quarantine=quarantine).name == meaning


def test_exception_of_a_check_fails_only_the_check() -> None:
    def leaves(_: Any) -> bool:
        raise SystemExit(3)

    found = run_post(Check("leaves", checks.Code(leaves)), None, NOW)
    assert (found.errored, found.outcome.message) == (True, "the check broke: SystemExit: 3")


class Undecided:
    def __bool__(self) -> bool:
        raise ValueError("neither yes nor no")


class Unspeakable:
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (CheckOutcome(True, "fine", metadata=cast(Any, None)), "its metadata is a NoneType; give a mapping"),
        (CheckOutcome(True, metadata=cast(Any, [("a", "b")])), "its metadata is a list; give a mapping"),
        (CheckOutcome(cast(Any, Undecided())), "ValueError: neither yes nor no"),
        (CheckOutcome(True, cast(Any, Unspeakable())), "ValueError: no words"),
        (CheckOutcome(True, metadata={"a": cast(Any, Unspeakable())}), "ValueError: no words"),
    ],
)
@pytest.mark.parametrize("phase", ["pre", "post"])
def test_unencodable_result_is_a_broken_check(answer: CheckOutcome, why: str, phase: str) -> None:
    check = Check("odd", checks.Code(lambda rows: answer if rows is ROWS else None))
    found = pre(check, rows=Read(ROWS)) if phase == "pre" else run_post(check, ROWS, NOW)
    assert (found.passed, found.errored, found.outcome.metadata) == (False, True, {})
    assert found.outcome.message.startswith("the check broke: ")
    assert why in found.outcome.message


def test_result_fields_are_converted_to_texts() -> None:
    outcome = CheckOutcome(cast(Any, numpy.bool_(False)), cast(Any, 3), metadata=cast(Any, {1: None}))
    found = run_post(Check("odd", checks.Code(lambda _: outcome)), None, NOW)
    assert found.outcome == CheckOutcome(False, "3", metadata={"1": "None"})
    assert found.passed is False
