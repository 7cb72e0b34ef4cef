"""Everyday commands, with the example project, a real mesh and a real worker."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from ..build.test_build import SERVO
from ..mesh import Mesh
from .shop import CALM_DAY, FLAKY_DAY, Shop, plain_environment, shop_on

pytestmark = pytest.mark.mesh

REVENUE = "shop/daily_revenue"


@pytest.fixture(scope="module")
def shop(mesh: Mesh, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    made = shop_on(mesh, "everyday", tmp_path_factory.mktemp("shop"))
    made.ok("deploy", "--yes")
    with made.worker("--workspace", "everyday"):
        # Waits until the worker has run a task.
        made.ok("run", "shop/raw_orders", "-p", "day=2025-03-05", "--wait")
        yield made


def newest(shop: Shop) -> str:
    runs = json.loads(shop.ok("runs", "list", "--json", "--limit", "1"))
    return str(runs[0]["run_id"])


def test_run_wait_prints_tasks_with_retries_rows_and_checks(shop: Shop) -> None:
    output = shop.ok("run", f"+{REVENUE}", "--partition", f"day={FLAKY_DAY}..{CALM_DAY}", "--follow", "--label", "a=b")
    lines = output.splitlines()
    assert "has 6 tasks" in lines[0]
    assert f"  ↻ shop/raw_orders[day=d:{FLAKY_DAY}]  ConnectionError: the till of {FLAKY_DAY} hung up" in output
    assert f"shop/raw_orders[day=d:{CALM_DAY}] | the tills wrote" in output
    revenue = next(line for line in lines if f"✓ {REVENUE}[day=d:{CALM_DAY}]" in line)
    assert "3 rows" in revenue
    assert "check sells_everything passed" in revenue
    assert next(line for line in lines if "✓ shop/clean_orders" in line).endswith("3 checks passed")
    assert "SUCCEEDED" in lines[-1]
    assert "6 succeeded" in lines[-1]
    table = json.loads(shop.ok("assets", "preview", REVENUE, "--json"))
    assert sorted({row["day"] for row in table}) == [FLAKY_DAY, CALM_DAY]
    assert [row["product"] for row in table[:3]] == ["coffee", "cups", "tea"]
    assert "coffee" in shop.ok("assets", "preview", REVENUE, "--partitions", "1", "--rows", "1")


def test_failure_shows_its_line_and_can_be_retried_after_a_fix(shop: Shop) -> None:
    shop.change("FROM clean_orders GROUP BY", "FROM clean_order GROUP BY")
    assert "the code changes, the definitions stay" in shop.ok("deploy", "--yes")
    failed = shop.servo("run", f"+{REVENUE}", "--partition", f"day=d:{CALM_DAY}", "--wait")
    assert failed.returncode == 1
    assert "CatalogException" in failed.stdout
    run_id = newest(shop)
    line = 1 + next(at for at, text in enumerate(shop.code.read_text().splitlines()) if "database.sql(query)" in text)
    for output in (failed.stdout, shop.ok("runs", "show", run_id)):
        assert f"    at src/shop/assets.py:{line}, called at src/shop/assets.py:" in output
        assert "    hint: correct the function" in output
        assert f"`servo runs retry {run_id}`\n" in output
    again = shop.servo("runs", "retry", run_id, "--same-code", "--wait", "--json")
    assert (again.returncode, json.loads(again.stdout)["state"]) == (1, "RUN_STATE_FAILED")
    shop.change("FROM clean_order GROUP BY", "FROM clean_orders GROUP BY")
    shop.ok("deploy", "--yes")
    mended = shop.ok("runs", "retry", run_id, "--wait")
    assert f"repeats 1 task of {run_id}" in mended
    assert f"✓ {REVENUE}[day=d:{CALM_DAY}]" in mended
    assert shop.servo("runs", "watch", run_id).returncode == 1
    assert shop.servo("runs", "watch", "last", "--json").returncode == 0


def test_runs_list_show_and_logs(shop: Shop) -> None:
    shop.ok("run", f"+{REVENUE}", "-p", f"day={CALM_DAY}", "--wait")
    run_id = newest(shop)
    assert shop.ok("runs", "list", "--filter", "state = SUCCEEDED").splitlines()[1].startswith(run_id)
    shown = json.loads(shop.ok("runs", "show", "--json"))
    assert (shown["run"]["run_id"], len(shown["tasks"])) == (run_id, 3)
    assert f"{REVENUE}[day=d:{CALM_DAY}]" in shop.ok("runs", "show")
    task = f"shop/raw_orders[day=d:{CALM_DAY}]"
    assert "the tills wrote" in shop.ok("runs", "logs", run_id, "--task", task)
    [line] = shop.ok("runs", "logs", "--json", "--lines", "1").splitlines()
    assert "the tills wrote" in json.loads(line)["text"]
    assert "SUCCEEDED" in shop.ok("runs", "explain")
    assert json.loads(shop.ok("runs", "explain", "--task", "shop/raw_orders", "--json"))[0]["task_key"].startswith(task)


def test_skipped_task_shows_its_reason(shop: Shop) -> None:
    whole = shop.code.read_text()
    shop.change("partitions=DAYS)\ndef daily_revenue", "partitions=DAYS, may_skip=True)\ndef daily_revenue")
    words = '"""Revenue of a day by product."""'
    shop.change(words, f'{words}\n    import servo\n\n    servo.skip("the shop was closed\\n(a holiday)")')
    shop.ok("deploy", "--yes")
    followed = shop.ok("run", f"+{REVENUE}", "-p", f"day={CALM_DAY}", "--wait")
    for output in (followed, shop.ok("runs", "show")):
        assert f"- {REVENUE}[day=d:{CALM_DAY}]  skipped by user code: the shop was closed\n" in output
    shop.code.write_text(whole)
    shop.ok("deploy", "--yes")


def test_terminal_shows_a_progress_bar(shop: Shop) -> None:
    shop.ok("run", f"+{REVENUE}", "-p", f"day={FLAKY_DAY}")
    ours, theirs = pty.openpty()
    environment = {**plain_environment(), **shop.environment, "TERM": "xterm", "COLUMNS": "160"}
    with subprocess.Popen([SERVO, "runs", "watch"], env=environment, stdout=theirs, cwd=shop.folder) as process:
        os.close(theirs)
        shown = b""
        while piece := _read(ours):
            shown += piece
    assert process.returncode == 0
    text = shown.decode()
    assert f"✓ {REVENUE}[day=d:{FLAKY_DAY}]" in text
    assert "━" in text
    assert "/3" in text


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    # The other side was closed.
    except OSError:
        return b""


def test_assets_list_show_and_lineage(shop: Shop) -> None:
    assert [row["asset_key"] for row in json.loads(shop.ok("assets", "list", f"1+{REVENUE}", "--json"))] == [
        "shop/clean_orders",
        REVENUE,
    ]
    assert "shop/raw_orders" in shop.ok("assets", "list")
    assert shop.ok("assets", "lineage").splitlines() == [
        "shop/raw_orders",
        "  └ shop/clean_orders",
        f"    └ {REVENUE}",
    ]
    shop.ok("run", f"+{REVENUE}", "-p", f"day={CALM_DAY}", "--wait")
    shown = shop.ok("assets", "show", REVENUE)
    assert "Revenue of a day by product" in shown
    assert f"day=d:{CALM_DAY}  PROMOTED  3 rows" in shown
    graph = json.loads(shop.ok("assets", "lineage", "--json"))
    assert len(graph["edges"]) == 2
    for words in (["assets", "show", "shop/daily_revenu"], ["run", "+shop/daily_revenu", "-p", f"day={CALM_DAY}"]):
        unknown = shop.servo(*words)
        assert unknown.returncode == 3
        assert unknown.stderr.count(f"did you mean `{REVENUE}`?") == 1


def test_flagged_run_names_its_failed_checks(shop: Shop) -> None:
    shop.change("== set(PRODUCTS)", "== 1 / 0")
    shop.ok("deploy", "--yes")
    output = shop.ok("run", f"+{REVENUE}", "-p", f"day={CALM_DAY}", "--wait")
    why = "check sells_everything broke: ZeroDivisionError: division by zero"
    assert f"flagged by a check\n  ! {REVENUE}[day=d:{CALM_DAY}]  {why}\n" in output
    run_id = newest(shop)
    failed = json.loads(shop.ok("assets", "checks", REVENUE, "--run", run_id, "--failed", "--json"))
    assert [each["result"]["name"] for each in failed] == ["sells_everything"]
    assert len(shop.ok("assets", "checks", "--run", run_id, "--limit", "3").splitlines()) == 4
    assert shop.ok("assets", "checks", "shop/raw_orders", "--failed") == "no check found anything wrong\n"
    assert shop.servo("assets", "checks", "shop/nothing").returncode == 3
    shop.change("== 1 / 0", "== set(PRODUCTS)")
    shop.ok("deploy", "--yes")


def test_dry_run_shows_the_plan_and_starts_nothing(shop: Shop) -> None:
    before = shop.ok("runs", "list", "--json")
    output = shop.ok("run", f"+{REVENUE}", "-p", "latest:2", "--dry-run")
    assert output.splitlines()[0] == "6 tasks would run"
    assert json.loads(shop.ok("run", REVENUE, "-p", "latest", "--dry-run", "--json"))["task_count"] == 1
    assert shop.ok("runs", "list", "--json") == before


def test_refusals_have_an_exit_code_and_a_remedy(shop: Shop) -> None:
    def ended(*words: str, **changed: str) -> tuple[int, str]:
        done = shop.servo(*words, **changed)
        return done.returncode, done.stderr

    code, output = ended("run", REVENUE)
    assert (code, "--partition latest" in output) == (2, True)
    assert ended("run", REVENUE, "-p", "latest", "--config", "[]")[0] == 2
    assert ended("run", REVENUE, "-p", "latest", "--label", "x")[0] == 2
    for words in (["show"], ["watch"], ["watch", "--follow"], ["logs", "--follow"], ["cancel"], ["retry"], ["explain"]):
        assert [ended("runs", words[0], run, *words[1:])[0] for run in ("run_" + "a" * 26, "nonsense")] == [3, 2], words
    code, output = ended("runs", "logs", "--task", "shop/raw_order")
    assert (code, "servo runs show" in output) == (3, True)
    code, output = ended("runs", "list", SERVO_API_KEY="servo_wrong")
    assert (code, "SERVO_API_KEY" in output) == (4, True)
    code, output = ended("runs", "list", SERVO_URL="https://127.0.0.1:1")
    assert (code, "servo doctor" in output) == (7, True)
    assert ended("run", REVENUE, "-p", f"day={CALM_DAY}", "--run-key", "k")[0] == 0
    code, output = ended("run", REVENUE, "-p", f"day={FLAKY_DAY}", "--run-key", "k", "--json")
    assert (code, json.loads(output)["error"]["reason"]) == (5, "RUN_KEY_CONFLICT")
    assert ended("runs", "list", SERVO_CA_FILE="/nowhere")[0] == 2
    others = str(Path(grpc.__file__).parent / "_cython/_credentials/roots.pem")
    for changed, remedy in (
        ({"SERVO_CA_FILE": others}, "SERVO_CA_FILE"),
        ({"SERVO_SERVER_NAME": "x"}, "SERVO_SERVER_NAME"),
    ):
        code, output = ended("runs", "list", **changed)
        assert (code, remedy in output, len(output.splitlines())) == (7, True, 2), output
    assert ended("runs", "logs", "--level", "loud")[0] == 2


def test_waiting_run_can_be_explained_and_cancelled(mesh: Mesh, tmp_path: Path) -> None:
    shop = shop_on(mesh, "nobody", tmp_path)
    shop.ok("deploy", "--yes")
    assert shop.servo("runs", "show").returncode == 3
    shop.ok("run", f"+{REVENUE}", "-p", f"day={CALM_DAY}")
    waiting = shop.servo("runs", "watch", "--timeout", "0.5")
    assert (waiting.returncode, "has not ended within 0.5 s and continues" in waiting.stderr) == (6, True)
    assert shop.servo("runs", "watch", "--timeout", "0.5", "--json").returncode == 6
    assert "no connected worker matches the task's workspace" in shop.ok("runs", "explain")
    assert shop.servo("doctor").returncode == 7
    assert "CANCELLED" in shop.ok("runs", "cancel", "last", "--wait")
    assert shop.servo("runs", "cancel", "last").returncode == 5


def test_doctor_finds_no_problem(shop: Shop) -> None:
    found = {each["what"]: each for each in json.loads(shop.ok("doctor", "--json"))}
    assert found["server"]["message"].startswith(shop.environment["SERVO_URL"])
    assert found["workers"]["remedy"] == ""
    assert shop.servo("doctor", SERVO_API_KEY="servo_wrong").returncode == 4
    assert shop.servo("doctor", SERVO_WORKSPACE="empty").returncode == 3
