"""Checks of jobs in a child process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from servo.data.commit import OutputIdentity, commit
from servo.data.folders import open_folder
from servo.v1 import quality_pb2
from servo.worker.checks import to_job

from .child_jobs import FILE, ROWS, code_check, definition, job, run


def test_check_of_a_further_output_reads_that_output(folder: Path) -> None:
    rows = [quality_pb2.CheckDefinition(name=name, row_count={"min": 1}) for name in ("row_count", "high.row_count")]
    answer, _ = run(folder, job("halves", checks=[to_job(each) for each in rows]))
    assert [(each["name"], each["passed"]) for each in answer["checks"]] == [
        ("row_count", True),
        ("high.row_count", False),
    ]


def test_checks_of_the_deployment_are_run_instead_of_the_codes(folder: Path) -> None:
    given = [
        definition("rows", "critical", row_count=ROWS),
        definition("no_ids", sql=quality_pb2.SqlCheck(query="SELECT id FROM output")),
        definition("is", "info", schema=quality_pb2.SchemaCheck(columns=[{"name": "id", "type": "int64"}])),
    ]
    answer, _ = run(folder, job("checked", checks=given))
    found = [(each["name"], each["passed"], each["severity"], each["message"]) for each in answer["checks"]]
    assert found == [
        ("rows", False, "critical", "has 1 row"),
        ("no_ids", False, "error", "1 row, the first is (1,)"),
        ("is", True, "info", ""),
    ]
    assert (answer["outcome"], answer["gating"]) == ("succeeded", "BLOCK")
    assert answer["blocking"] == "the check `rows` failed: has 1 row"
    assert run(folder, job("checked", checks=given, quarantine=True))[0]["gating"] == "QUARANTINE"


def test_critical_input_check_prevents_user_code(folder: Path) -> None:
    given = [definition("is_text", "critical", "pre", code=code_check("is_text"))]
    wanted = job("parsed", inputs=[FILE], item_json='{"b": 1}', checks=given, quarantine=True)
    answer, _ = run(folder, wanted)
    # Without an output there is nothing to quarantine.
    assert (answer["outcome"], answer["gating"], answer["items"]) == ("succeeded", "BLOCK", None)
    assert [(each["phase"], each["passed"]) for each in answer["checks"]] == [("pre", False)]
    # Results from before the failure are reported with it.
    failed, _ = run(folder, {**wanted, "item_json": '"a"'})
    assert (failed["outcome"], [each["passed"] for each in failed["checks"]]) == ("failed", [True])


def test_hanging_check_times_out_and_its_child_is_replaced(folder: Path) -> None:
    given = definition("hangs", "critical", timeout={"nanos": 50_000_000}, code=code_check("hangs"))
    answer, _ = run(folder, job("checked", checks=[given]))
    assert (answer["gating"], answer["worn"]) == ("BLOCK", True)
    assert answer["checks"][0]["message"] == "took longer than 0.05 s"


def test_unencodable_check_result_does_not_end_the_child(folder: Path) -> None:
    """The output has been committed by then."""
    given = [definition(name, code=code_check(name)) for name in ("careless", "undecided")]
    answer, _ = run(folder, job("checked", checks=given))
    assert (answer["outcome"], answer["gating"], len(answer["outputs"])) == ("succeeded", "WARN", 1)
    assert [(each["passed"], each["errored"]) for each in answer["checks"]] == [(False, True)] * 2
    assert [each["message"] for each in answer["checks"]] == [
        "the check broke: InvalidValue: its metadata is a NoneType; give a mapping from names to texts, or leave it "
        "out",
        "the check broke: ValueError: neither yes nor no",
    ]


@pytest.mark.parametrize(
    ("check", "part"),
    [
        (definition("odd"), "`odd` is of a kind that this worker does not know; install a newer"),
        (
            definition("lost", code=code_check("ghost")),
            "`lost` is `work.ghost`, which is not a function",
        ),
        (definition("early", phase="pre", row_count=ROWS), "`early` checks inputs (phase pre), and the asset has"),
    ],
)
def test_unexecutable_check_fails_before_user_code(folder: Path, check: dict[str, Any], part: str) -> None:
    answer, lines = run(folder, job("checked", checks=[check]))
    assert (answer["outcome"], answer["error"]["category"], lines) == ("failed", "CONFIGURATION", [])
    assert part in answer["error"]["message"]


def test_rows_are_compared_with_the_jobs_previous_version(folder: Path) -> None:
    less = definition("less", "critical", row_count=quality_pb2.RowCountCheck(min_share_of_previous_ppm=900_000))
    before = f"file://{folder}/before/"
    commit(
        open_folder(before),
        [{"id": each} for each in range(3)],
        "",
        OutputIdentity("r", "B", "default/checked", ""),
        [],
    )
    answer, lines = run(folder, job("checked", checks=[less], previous=before))
    assert (answer["gating"], lines) == ("BLOCK", [("STDOUT", "ran")])
    assert answer["checks"][0]["message"] == "has 1 rows, the version before 3"
    # The server names no previous version.
    assert run(folder, job("checked", checks=[less], previous=""))[0]["gating"] == "ALLOW"
    gone = run(folder, job("checked", checks=[less], previous=f"file://{folder}/gone/"))[0]
    assert gone["error"]["category"] == "INFRASTRUCTURE"
