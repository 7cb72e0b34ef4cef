"""Jobs in a child process: output, errors, usage and reuse of the child."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from servo.worker.child import Child

from .child_jobs import FILE, input_of, job, run, silent, take_into, with_child


def test_output_and_usage_are_reported(folder: Path) -> None:
    answer, lines = run(folder, job("fine"))
    assert (answer["outcome"], answer["items"]) == ("succeeded", None)
    assert answer["usage"]["memory_peak_bytes"] > 1_000_000
    assert sorted(lines) == [("STDERR", "oops"), ("STDOUT", "hello day=d:2026-01-31 0.5")]


def test_one_child_runs_several_jobs(folder: Path) -> None:
    async def use(child: Child) -> list[str]:
        return [(await child.run(job("fine"), silent))["outcome"] for _ in range(50)]

    assert with_child(folder, use) == ["succeeded"] * 50


def test_last_output_belongs_to_its_job(folder: Path) -> None:
    """Its lines are redacted with its secrets and logged under its name."""

    async def use(child: Child) -> list[list[str]]:
        printed: list[list[str]] = [[] for _ in range(50)]
        for number, lines in enumerate(printed):
            day = f"day=d:2026-01-{number % 28 + 1:02}"
            await child.run(job("fine", partition=day), partial(take_into, lines))
        return printed

    for number, lines in enumerate(with_child(folder, use)):
        assert sorted(lines) == [f"hello day=d:2026-01-{number % 28 + 1:02} 0.5", "oops"]


def test_asset_is_found_by_its_module_level_name(folder: Path) -> None:
    answer, lines = run(folder, job("renamed"))
    assert (answer["outcome"], lines) == ("succeeded", [("STDOUT", "plainly")])


def test_items_are_returned_and_passed_in(folder: Path) -> None:
    assert run(folder, job("files"))[0]["items"] == ['"a"', '{"b": 1}']
    assert run(folder, job("parsed", inputs=[FILE], item_json='{"b": 1}'))[0]["outcome"] == "succeeded"


def test_skip_is_not_a_failure(folder: Path) -> None:
    records: list[str] = []

    async def use(child: Child) -> dict[str, Any]:
        return await child.begin(job("skipping"), silent, lambda record: records.append(record["text"]))

    answer = with_child(folder, use)
    assert (answer["outcome"], answer["reason"]) == ("skipped", "nothing new")
    assert records == ["skipped: nothing new"]


@pytest.mark.parametrize(
    ("function", "category", "kind", "part"),
    [
        ("failing", "USER_CODE", "KeyError", "ghost"),
        ("leaving", "USER_CODE", "SystemExit", "3"),
        ("unsendable", "USER_CODE", "Odd", "odd"),
        ("strange_items", "USER_CODE", "InvalidValue", "not JSON serializable"),
        ("ghost", "CONFIGURATION", "CodeMissing", "is not an asset in this version"),
        ("reading", "INPUT", "InputMissing", "`default/fine` has no version for the parameter `fine`; materialize it"),
        ("homeless", "CONFIGURATION", "BadFolder", "`` is not a folder for data: set output_base of dispatcher and"),
    ],
)
def test_failure_is_reported_and_the_child_continues(
    folder: Path, function: str, category: str, kind: str, part: str
) -> None:
    inputs = [input_of("fine")] if function == "reading" else []

    async def use(child: Child) -> tuple[dict[str, Any], str]:
        failed = await child.run(job(function, inputs=inputs), silent)
        return failed, (await child.run(job("fine"), silent))["outcome"]

    answer, after = with_child(folder, use)
    error = answer["error"]
    assert (answer["outcome"], error["category"], error["type"], after) == ("failed", category, kind, "succeeded")
    assert part in error["message"]


def test_errors_have_location_and_retry_policy(folder: Path) -> None:
    error = run(folder, job("failing"))[0]["error"]
    assert error["retriable"] is True
    file, _, line = error["location"].rpartition(":")
    assert file.endswith("work.py")
    assert (folder / "work.py").read_text().splitlines()[int(line) - 1] == '    return {}["ghost"]'


@pytest.mark.parametrize(
    "given", [job("closing", config={"stream": name}) for name in ("stdout", "stderr")] + [job("replacing")]
)
def test_closing_stdout_succeeds_and_the_child_is_replaced(folder: Path, given: dict[str, Any]) -> None:
    """The next job could not print, so the child is replaced."""
    records: list[str] = []

    async def use(child: Child) -> tuple[dict[str, Any], list[str]]:
        lines: list[str] = []
        output = {"output_uri": f"file://{folder}/out/"}
        take = partial(take_into, lines)
        return await child.begin(given | output, take, lambda record: records.append(record["text"])), lines

    answer, lines = with_child(folder, use)
    assert (answer["outcome"], len(answer["outputs"]), answer["worn"]) == ("succeeded", 1, True)
    closing = given["function"] == "closing"
    assert (lines, records) == ((["last words"], ["logged"]) if closing else ([], []))


def test_child_with_open_streams_is_reused(folder: Path) -> None:
    assert run(folder, job("fine"))[0]["worn"] is False


def test_trace_is_in_the_environment(folder: Path) -> None:
    async def use(child: Child) -> list[list[str]]:
        printed: list[list[str]] = [[], []]
        for lines, trace in zip(printed, ({"TRACEPARENT": "00-aa-bb-01"}, {}), strict=True):
            await child.run(job("traced", trace=trace), partial(take_into, lines))
        return printed

    assert with_child(folder, use) == [["00-aa-bb-01"], ["None"]]


def test_usage_is_measured_per_job(folder: Path) -> None:
    async def use(child: Child) -> list[dict[str, int]]:
        return [(await child.run(job(name), silent))["usage"] for name in ("large", "fine", "started")]

    large, fine, started = with_child(folder, use)
    assert large["memory_peak_bytes"] > 200_000_000
    # The child is the same, but the peak of the previous job does not count.
    assert fine["memory_peak_bytes"] < 150_000_000
    assert large["cpu_ms"] > fine["cpu_ms"]
    assert large["memory_mb_ms"] > fine["memory_mb_ms"]
    # Processes that it started and waited for count.
    assert started["cpu_ms"] >= 200


def test_hundred_megabytes_of_output_are_read_and_truncated(folder: Path) -> None:
    answer, lines = run(folder, job("loud"))
    assert answer["outcome"] == "succeeded"
    assert [(stream, len(line)) for stream, line in lines] == [("STDOUT", 32 * 1024)] * 100
