"""Inputs and outputs of jobs in a child process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from servo.data.commit import OutputIdentity, commit
from servo.data.folders import open_folder
from servo.worker.child import ChildDied

from .child_jobs import CODE, input_of, job, run


def test_source_is_loaded_by_its_io(folder: Path) -> None:
    """The server names its partitions but no version."""
    feed = input_of("feed", ["day=d:2026-01-31", "", ""])
    assert run(folder, job("fed", inputs=[feed]))[1] == [("STDOUT", "the feed of day=d:2026-01-31")]
    assert run(folder, job("fed", inputs=[input_of("feed")], partition=""))[1] == [("STDOUT", "the feed of None")]
    days = input_of("days", ["day=d:2026-01-30", "", ""], ["day=d:2026-01-31", "", ""], asset="default/feed")
    assert [line for _, line in run(folder, job("fed_by_days", inputs=[days]))[1]] == [
        "day=d:2026-01-30 -> the feed of day=d:2026-01-30",
        "day=d:2026-01-31 -> the feed of day=d:2026-01-31",
    ]
    assert run(folder, job("framed", inputs=[input_of("table")]))[1] == [("STDOUT", "DataFrame [1]")]
    (answer, _) = run(folder, job("unfed", inputs=[input_of("bare")]))
    assert answer["error"]["category"] == "INPUT"


def test_class_can_be_an_io(folder: Path) -> None:
    (output,) = run(folder, job("stored_by_class"))[0]["outputs"]
    assert output["metadata"] == {"format": "work.Dying"}


def test_errors_of_a_user_io_are_user_code_errors(folder: Path) -> None:
    """With their location and retry rules, as without a server."""
    (output,) = run(folder, job("readable"))[0]["outputs"]
    (folder / "out").rename(folder / "kept")
    version = ["day=d:2026-01-31", "A", output["uri"].replace("/out/", "/kept/")]
    for given, line in [
        (job("denied"), 'raise PermissionError("the database says no")'),
        (job("looking", inputs=[input_of("readable", version)]), 'raise PermissionError("nor may you look")'),
    ]:
        error = run(folder, given)[0]["error"]
        assert (error["category"], error["type"], error["retriable"]) == ("USER_CODE", "PermissionError", False)
        file, _, number = error["location"].rpartition(":")
        assert (file, CODE.splitlines()[int(number) - 1].strip()) == (str(folder / "work.py"), line)


def test_storage_errors_are_not_user_code_errors(folder: Path) -> None:
    (folder / "out").touch()
    error = run(folder, job("readable"))[0]["error"]
    assert (error["category"], error["retriable"]) == ("INFRASTRUCTURE", None)
    assert "cannot be written" in error["message"]


def test_partial_versions_of_a_mapped_asset_are_refused(folder: Path) -> None:
    version = ["", "A", f"file://{folder}/x/"]
    answer, _ = run(folder, job("joined", inputs=[input_of("parsed", version)]))
    assert answer["error"]["category"] == "INPUT"
    assert "`default/parsed` is made once per item" in answer["error"]["message"]


@pytest.mark.parametrize(("own", "rest"), [("", ""), ("day=d:2026-01-31", ",day=d:2026-01-31")])
def test_values_of_all_items_are_one_list(folder: Path, own: str, rest: str) -> None:
    def version(item: int) -> list[str]:
        about = OutputIdentity("r", str(item), "default/parsed", "")
        made = commit(open_folder(f"file://{folder}/{item}/"), f"made of {item}", "", about, [])
        return [f"_map=i:{item}{rest}", str(item), made["uri"]]

    versions = [version(item) for item in (10, 0, 2)]
    answer, lines = run(folder, job("joined", inputs=[input_of("parsed", *versions)], partition=own))
    assert (answer["outcome"], lines) == ("succeeded", [("STDOUT", "['made of 0', 'made of 2', 'made of 10']")])


def test_death_before_the_marker_leaves_no_output(folder: Path) -> None:
    with pytest.raises(ChildDied, match="SIGKILL"):
        run(folder, job("stored"))
    assert [file.name for file in (folder / "out").iterdir()] == ["data"]
    # The next attempt has its own folder and identity.
    (folder / "out").rename(folder / "left")
    (output,) = run(folder, job("stored", attempt=2, attempt_id="B"))[0]["outputs"]
    marker = json.loads((folder / "out" / "_commit.json").read_bytes())
    assert (marker["materialization_id"], output["asset_key"], output["byte_size"]) == ("B", "default/stored", 1)
    version = ["day=d:2026-01-31", "B", output["uri"]]
    answer, lines = run(folder, job("after", inputs=[input_of("stored", version)]))
    assert (answer["outcome"], answer["outputs"], lines) == ("succeeded", [], [("STDOUT", "got 2")])
    assert (answer["usage"]["read_bytes"], answer["usage"]["written_bytes"]) == (1, 0)


def test_the_same_attempt_does_not_commit_twice(folder: Path) -> None:
    assert run(folder, job("stored", attempt=2))[0]["outcome"] == "succeeded"
    answer, _ = run(folder, job("stored", attempt=2))
    assert (answer["outcome"], answer["error"]["category"]) == ("failed", "INFRASTRUCTURE")
