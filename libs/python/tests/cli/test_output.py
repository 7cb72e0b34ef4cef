"""Input and output of commands, without a server."""

from __future__ import annotations

import io
import json
import math
import subprocess
import sys
from datetime import date
from pathlib import Path

import click
import pyarrow
import pyarrow.parquet
import pytest

from servo import __version__
from servo.cli import preview, show
from servo.cli.confirm import confirm
from servo.cli.deploy import print_diff
from servo.cli.failures import called_at, hint, place
from servo.cli.follow import check_text
from servo.cli.help import FILE, help_of, written
from servo.cli.main import COMMANDS
from servo.cli.partition_choice import partition_choice
from servo.define.run import AllPartitions, Keys, LatestPartitions, PartitionChoice, Slice, Slices
from servo.errors import InvalidValue
from servo.v1 import common_pb2, deployment_pb2, quality_pb2

from ..build.test_build import SERVO
from .shop import new_shop, plain_environment
from .test_main import HEAVY, loaded


def servo(*words: str, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SERVO, *words],
        cwd=folder,
        env={**plain_environment(), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ([], None),
        (["all"], AllPartitions()),
        (["latest"], LatestPartitions(1)),
        (["latest:7"], LatestPartitions(7)),
        (["day=d:2026-01-31", "day=d:2026-02-01"], Keys(("day=d:2026-01-31", "day=d:2026-02-01"))),
        (["day=2026-01-31"], Slices({"day": Slice(("2026-01-31",))})),
        (["day=2026-01-30", "day=2026-01-31"], Slices({"day": Slice(("2026-01-30", "2026-01-31"))})),
        (
            ["day=2026-01-01..2026-01-31,region=eu"],
            Slices({"day": Slice(start="2026-01-01", end="2026-01-31"), "region": Slice(("eu",))}),
        ),
        (["day=..2026-01-31"], Slices({"day": Slice(end="2026-01-31")})),
    ],
)
def test_partitions_are_parsed_as_users_type_them(given: list[str], meant: PartitionChoice | None) -> None:
    assert partition_choice(given) == meant


@pytest.mark.parametrize(
    "given",
    [["2026-01-31"], ["day="], ["latest:0"], ["day=1", "day=2..3"], ["day=2..3", "day=1"], ["day=d:2026-01-31", "x=1"]],
)
def test_invalid_partitions_are_refused(given: list[str]) -> None:
    with pytest.raises(InvalidValue, match="--partition"):
        partition_choice(given)


def test_failure_location_is_in_the_users_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("src/shop/assets.py", "jobs/load.py", ".servo/worker/code/abc/shop/assets.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    copy = f"{tmp_path}/.servo/worker/code/abc/shop/assets.py"
    assert place(f"{copy}:14", "") == "src/shop/assets.py:14"
    assert place("/elsewhere/code/abc/jobs/load.py:3", "") == "jobs/load.py:3"
    library = "/usr/lib/python3/duckdb/_seam.py"
    traceback = f'File "{copy}", line 7, in a\nFile "{copy}", line 9, in b\nFile "{library}", line 83, in c'
    assert place(f"{library}:83", traceback) == "src/shop/assets.py:9"
    assert place(f"{library}:83", "") == f"{library}:83"
    assert place("", "") == ""


def test_tracebacks_of_causes_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").touch()
    words = [
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
    ]
    for between in words:
        last = 'File "/x/a.py", line 7, in f\nFile "/x/a.py", line 9, in g\n'
        assert called_at(f'File "/x/a.py", line 3, in f\n\n{between}\n\n{last}') == "a.py:7"


@pytest.mark.parametrize(
    ("versions", "lines"),
    [
        (["new", "new"], ["the code changes, the definitions stay: the data of 2 assets becomes stale"]),
        (
            ["new", "2"],
            ["~ shop/b  (code_version; its data becomes stale)", "the code changes: the data of 1 asset becomes stale"],
        ),
    ],
)
def test_explicit_code_version_is_shown(
    capsys: pytest.CaptureFixture[str], versions: list[str], lines: list[str]
) -> None:
    changes = [
        deployment_pb2.DefinitionChange(
            key=f"shop/{name}",
            change="CHANGE_KIND_CHANGED",
            makes_stale=True,
            fields=[{"path": "code_version", "before_json": '"old"', "after_json": f'"{version}"'}],
        )
        for name, version in zip("ab", versions, strict=True)
    ]
    print_diff(deployment_pb2.DeploymentDiff(changes=changes, stale_partitions=1), "new", new_code=True, err=False)
    assert capsys.readouterr().out.splitlines() == [
        f"  {line}" for line in [*lines, "1 partition holds data of other code"]
    ]


def test_each_check_is_one_line() -> None:
    passed = [quality_pb2.CheckResult(name=name, passed=True) for name in "ab"]
    failed = quality_pb2.CheckResult(name="c", message="has 1 row\nor so")
    broken = quality_pb2.CheckResult(name="d", errored=True, message="the check broke: ParserException: no\n\nLINE 1")
    speechless = quality_pb2.CheckResult(name="e")
    assert check_text([*passed, failed, broken, speechless]) == [
        "2 checks passed",
        "check c failed: has 1 row",
        "check d broke: ParserException: no",
        "check e failed",
    ]


@pytest.mark.parametrize("category", ["INPUT", "CONFIGURATION", "TIMEOUT", "TRANSIENT", "USER_CODE"])
def test_every_failure_hint_ends_with_a_retry(category: str) -> None:
    error = common_pb2.TaskError(category=f"ERROR_CATEGORY_{category}")
    assert "`servo runs retry run_x`" in hint(error, "run_x")
    error.hint = "eat more fruit"
    assert hint(error, "run_x") == "eat more fruit"


def test_stored_help_is_current() -> None:
    assert json.loads(FILE.read_text()) == written(), "run `python -m servo.cli.help`"
    assert help_of(["nothing"]) is None


@pytest.mark.parametrize("name", COMMANDS)
def test_command_help_imports_no_heavy_packages(name: str) -> None:
    request = f"sys.argv = ['servo', '{name}', '--help']\nfrom servo.cli.main import main\n"
    assert loaded(f"{request}try: main()\nexcept SystemExit: pass", HEAVY) == set()
    assert servo(name, "--help").stdout == help_of([name])


def test_version_is_printed() -> None:
    assert servo("--version").stdout == f"servo {__version__}\n"


def test_missing_server_names_the_remedy(tmp_path: Path) -> None:
    done = servo("runs", "list", folder=tmp_path)
    assert done.returncode == 2
    assert "servo dev" in done.stderr
    assert "SERVO_URL" in done.stderr
    half = servo("runs", "list", folder=tmp_path, SERVO_URL="https://localhost")
    assert (half.returncode, "SERVO_TENANT" in half.stderr) == (2, True)


@pytest.mark.parametrize("words", [["watch"], ["watch", "--json"], ["logs", "--follow"], ["show"]])
def test_unreachable_server_fails_soon(tmp_path: Path, words: list[str]) -> None:
    where = {"SERVO_URL": "https://127.0.0.1:1", "SERVO_TENANT": "t", "SERVO_WORKSPACE": "w", "SERVO_API_KEY": "k"}
    done = servo("runs", words[0], "run_" + "a" * 26, *words[1:], folder=tmp_path, **where)
    assert (done.returncode, "the server cannot be reached" in done.stderr) == (7, True), done.stderr


def test_preview_replaces_numbers_that_json_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = {"n": [0.5, math.nan, math.inf, -math.inf, None], "day": [date(2026, 1, 31)] * 5, "ok": [True] * 5}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "data.parquet")
    show.print_json(preview.plain(*preview.rows([f"file://{tmp_path}/"], 10)))

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    output = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert output == [{"n": number, "day": "2026-01-31", "ok": True} for number in (0.5, None, None, None, None)]


def test_print_json_refuses_nan_and_infinity(capsys: pytest.CaptureFixture[str]) -> None:
    for number in (math.nan, math.inf):
        with pytest.raises(ValueError, match="not JSON compliant"):
            show.print_json({"number": number})
    assert capsys.readouterr().out == ""


def test_confirm_accepts_only_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidValue, match="give --yes"):
        confirm("Really?")
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\nn\n"))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    confirm("Really?")
    # First "no", then the end of the input.
    for _ in range(2):
        with pytest.raises(click.exceptions.Exit) as ended:
            confirm("Really?")
        assert ended.value.exit_code == 130


def test_mistyped_subcommand_gets_a_suggestion(tmp_path: Path) -> None:
    done = servo("runs", "shwo", folder=tmp_path)
    assert (done.returncode, "Did you mean 'show'?" in done.stderr) == (2, True)


def test_internal_error_shows_no_traceback(tmp_path: Path) -> None:
    (tmp_path / ".servo").mkdir()
    (tmp_path / ".servo/dev.json").write_text("no JSON")
    done = servo("runs", "list", folder=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr, "SERVO_DEBUG=1" in done.stderr) == (70, False, True)
    assert "Traceback" in servo("runs", "list", folder=tmp_path, SERVO_DEBUG="1").stderr


def test_unusable_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = servo("init", "file", folder=tmp_path)
    assert (done.returncode, done.stderr.startswith("servo: file")) == (2, True)
    assert "cannot be used" in done.stderr
    done = servo("init", "file", "--json", folder=tmp_path)
    assert json.loads(done.stderr)["error"]["exit_code"] == 2


def test_init_prints_a_quoted_cd_command(tmp_path: Path) -> None:
    assert "\n  cd 'my shop'\n" in servo("init", "my shop", folder=tmp_path).stdout


def test_init_creates_a_complete_project_once(tmp_path: Path) -> None:
    shop = new_shop(tmp_path / "shop")
    built = json.loads(shop.ok("build", "--json"))
    assert (built["assets"], built["schedules"]) == (3, 0)
    again = shop.servo("init", "--json")
    assert (again.returncode, json.loads(again.stderr)["error"]["exit_code"]) == (5, 5)
    made = json.loads(servo("init", "other", "--json", folder=tmp_path).stdout)
    assert {".gitignore", "servo.toml", "src/shop/assets.py", "tests/test_assets.py"} <= set(made["files"])


def test_tests_of_a_new_project_pass(tmp_path: Path) -> None:
    shop = new_shop(tmp_path)
    environment = {**plain_environment(), "PYTHONPATH": "src"}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(words, cwd=shop.folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_doctor_reports_what_is_missing(tmp_path: Path) -> None:
    done = servo("doctor", folder=tmp_path, SERVO_STANDALONE="/nowhere", SERVO_DATABASE_URL="postgres://x")
    assert done.returncode == 0
    assert "none is named" in done.stdout
    assert "SERVO_DATABASE_URL names one" in done.stdout
