"""The worker process on a real mesh, with a project that was built and deployed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from servo import AllPartitions, Client, Run
from servo.build.build import Built, build
from servo.v1 import materialization_pb2, run_pb2, scheduler_data_pb2, state_pb2

from ..build.test_build import SERVO, project
from ..client.line import Line
from ..mesh import TENANT, Mesh
from ..waiting import wait_until

pytestmark = pytest.mark.mesh

CODE = """
import os, signal, time
from pathlib import Path
import polars
from servo import AllOf, CheckOutcome, Daily, In, Items, Partitions, Retry, Secret, Static, Window
from servo import asset, check, checks, mapped, multi_asset, skip, source

EFFECTS = Path(os.environ["EFFECTS"])

def note(context):
    with EFFECTS.open("a") as file:
        file.write(f"{context.asset_key} {context.attempt} {context.fencing_token}\\\\n")

@asset(namespace="ok", yields_items=True, secrets=[Secret.env("token", "TOKEN")])
def files(context):
    note(context)
    print("the token is", context.secrets["token"])
    return Items(["a", "b"])

@asset(namespace="ok", deps={"file": mapped(files)})
def parsed(file, context):
    assert file == ["a", "b"][context.map_index]
    note(context)

@asset(namespace="ok", deps=[parsed], retry=Retry(attempts=2, delay="100ms"), retry_on=[KeyError])
def flaky(context):
    note(context)
    if context.attempt == 1:
        raise KeyError("not yet")

@asset(namespace="bad")
def broken():
    return {}["ghost"]

@asset(namespace="bad")
def odd():
    print("a nul \\0")
    raise ValueError("a nul \\0 and half a pair \\ud800")

@asset(namespace="bad", checks=[checks.row_count(at_least=1).on(severity="critical")])
def empty():
    return []

@asset(namespace="bad")
def attached():
    return [1]

@check(attached, severity="critical")
def never(value):
    return CheckOutcome(False, "not today")

@asset(namespace="bad", retry=1, checks=[checks.sql("SELECT * FROM output WHERE id = 1").on(severity="critical")])
def queried():
    return [{"id": 1}]

@asset(namespace="less", retry=1, checks=[checks.row_count(share_of_previous=0.9).on(severity="critical")])
def comparing(context):
    return [1] * context.config.get("rows", 3)

@asset(namespace="bad", may_skip=True)
def nothing():
    skip("nothing new")

@asset(namespace="bad", timeout="1s", retry=1)
def endless():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1)

ALL = {"region": AllOf()}
REGIONS = Partitions(region=Static("eu", "us"))

@asset(namespace="flow", partitions=REGIONS)
def orders(context):
    import pyarrow
    return pyarrow.table({"region": [context.partition["region"]] * 3, "amount": [1, 2, 3]})

@asset(namespace="flow", partitions=REGIONS, checks=[checks.row_count(at_least=3).on(phase="pre", severity="critical")])
def clean(orders: "polars.DataFrame"):
    return orders.filter(orders["amount"] > 1)

@multi_asset(namespace="flow", outputs=["total", "regions"], deps={"clean": In("flow/clean", mapping=ALL)})
def summary(clean):
    return sum(frame["amount"].sum() for frame in clean.values()), sorted(key["region"] for key in clean)

@asset(namespace="flow")
def report(total, regions):
    EFFECTS.write_text(f"{total} {regions}")

@asset(namespace="flow", deps={"total": In("flow/total")}, quarantine=True,
       checks=[checks.row_count(at_least=9).on(severity="critical")])
def doubtful(total):
    return [total]

@asset(namespace="fan", yields_items=True)
def listed(context):
    return Items(context.config["items"])

@asset(namespace="fan", deps={"item": mapped(listed)})
def doubled(item):
    return None if item == 0 else 2 * item

@asset(namespace="fan")
def joined(doubled):
    EFFECTS.write_text(repr(doubled))

@asset(namespace="days", partitions=Daily("2026-01-01"))
def sold():
    return 1

@asset(namespace="days", partitions=Daily("2026-01-02"))
def later(sold):
    assert sold == 1, sold

@asset(namespace="days", partitions=Daily("2026-01-01"), deps={"sold": In(sold, mapping={"day": Window(-1, -1)})})
def growth(sold, context):
    with EFFECTS.open("a") as file:
        file.write(f"{context.partition['day']} {sorted(sold.values())}\\n")

class Rates:
    def load(self, partition):
        return {"eu": 2}

rates = source("rates", namespace="fed", io=Rates)

@asset(namespace="fed")
def priced(rates):
    EFFECTS.write_text(f"a price of {rates['eu']}")

@asset(namespace="slow", retry=Retry(attempts=1))
def slow(context):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note(context)
    while not EFFECTS.with_name("go").exists():
        time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    folder = tmp_path_factory.mktemp("project")
    project(folder, {"workshop.py": CODE.replace("\\\\", "\\")})
    os.environ["EFFECTS"] = str(folder / "effects")
    yield build(folder)
    del os.environ["EFFECTS"]


@pytest.fixture
def effects(tmp_path: Path) -> Path:
    return tmp_path / "effects"


@contextmanager
def working(
    mesh: Mesh, workspace: str, effects: Path, *options: str, url: str = "", stderr: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    environment = {
        **os.environ,
        "SERVO_URL": url or mesh.url,
        "SERVO_API_KEY": mesh.api_key,
        "SERVO_TENANT": TENANT,
        "SERVO_CA_FILE": str(mesh.ca_file),
        "SERVO_SERVER_NAME": "localhost",
        "EFFECTS": str(effects),
        "TOKEN": "t0p-secret",
    }
    command = [SERVO, "worker", "--state", str(effects.with_name("state")), "--workspace", workspace, *options]
    with subprocess.Popen(command, env=environment, stderr=stderr) as process:
        try:
            yield process
        finally:
            process.kill()


def deployed(client: Client, built: Built) -> Client:
    client.upload(built.archive, "SOURCE_ARCHIVE")
    client.deploy(built.manifest)
    return client


def tasks(client: Client, run: run_pb2.Run) -> dict[str, str]:
    listed = client.tasks(run.run_id)
    return {task.task_key: state_pb2.TaskState.Name(task.state).removeprefix("TASK_STATE_") for task in listed}


def test_a_project_is_built_deployed_and_run(mesh: Mesh, built: Built, effects: Path) -> None:
    with mesh.client("work-ok") as client, working(mesh, "work-ok", effects) as process:
        run = deployed(client, built).trigger(Run("ok.*"))
        assert client.wait(run.run_id).state == state_pb2.RUN_STATE_SUCCEEDED
        assert effects.read_text().splitlines() == [
            "ok/files 1 1",
            *sorted(["ok/parsed 1 1", "ok/parsed 1 1"]),
            "ok/flaky 1 1",
            "ok/flaky 2 2",
        ]
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    assert list((effects.with_name("state") / "outcomes").iterdir()) == []


def test_failures_skips_checks_and_timeouts_are_reported(mesh: Mesh, built: Built, effects: Path) -> None:
    with mesh.client("work-bad") as client, working(mesh, "work-bad", effects, "--slots", "4"):
        run = deployed(client, built).trigger(Run("bad.*"))
        ended = client.wait(run.run_id)
        assert ended.state == state_pb2.RUN_STATE_FAILED
        assert tasks(client, run) == {
            "bad/attached:materialize": "FAILED",
            "bad/broken:materialize": "FAILED",
            "bad/empty:materialize": "FAILED",
            "bad/endless:materialize": "FAILED",
            "bad/nothing:materialize": "SKIPPED",
            "bad/odd:materialize": "FAILED",
            "bad/queried:materialize": "FAILED",
        }
        found = {task.task_key: task for task in client.tasks(run.run_id)}
        skipped = client.task(run.run_id, found["bad/nothing:materialize"].task_id)
        assert [attempt.skip_reason for attempt in skipped.attempts] == ["nothing new"]
        assert skipped.history[-1].detail == "nothing new"
        broken = found["bad/broken:materialize"].error
        assert (broken.type, broken.location.rpartition("/")[2]) == ("KeyError", f"workshop.py:{line_of('ghost')}")
        assert found["bad/odd:materialize"].error.message == "a nul ␀ and half a pair ?"
        # The worker's report or the server's timeout, whichever came first.
        assert found["bad/endless:materialize"].reason == state_pb2.TRANSITION_REASON_TIMED_OUT
        for name, message in [
            ("empty", "the check `row_count` failed: has 0 rows"),
            ("attached", "the check `never` failed: not today"),
            ("queried", "the check `sql` failed: 1 row, the first is (1,)"),
        ]:
            task = found[f"bad/{name}:materialize"]
            assert (task.reason, task.error.message) == (state_pb2.TRANSITION_REASON_CHECK_FAILED, message)


def test_rows_are_compared_with_the_promoted_version(mesh: Mesh, built: Built, effects: Path) -> None:
    with mesh.client("work-less") as client, working(mesh, "work-less", effects):
        deployed(client, built)
        states = []
        for rows in [3, 2, 3]:
            run = client.trigger(Run("less.*", config={"rows": rows}))
            states.append(state_pb2.RunState.Name(client.wait(run.run_id).state).removeprefix("RUN_STATE_"))
            if rows == 2:
                (task,) = client.tasks(run.run_id)
                assert task.error.message == "the check `row_count` failed: has 2 rows, the version before 3"
        assert states == ["SUCCEEDED", "FAILED", "SUCCEEDED"]


def versions(client: Client, workspace: str) -> dict[tuple[str, str], materialization_pb2.Materialization]:
    request = scheduler_data_pb2.ListMaterializationsRequest(tenant=TENANT, workspace=workspace, page_size=100)
    listed = client.scheduler.ListMaterializations(request).materializations
    return {(each.output.asset_key, each.output.partition_key): each for each in listed}


def test_data_flows_from_task_to_task(mesh: Mesh, built: Built, effects: Path) -> None:
    with mesh.client("work-flow") as client, working(mesh, "work-flow", effects):
        run = deployed(client, built).trigger(Run("flow.*", partitions=AllPartitions()))
        ended = client.wait(run.run_id)
        assert ended.state == state_pb2.RUN_STATE_SUCCEEDED, ended
        assert effects.read_text() == "10 ['eu', 'us']"
        made = versions(client, "work-flow")
    assert {key: each.output.row_count for key, each in made.items() if each.output.HasField("row_count")} == {
        ("flow/orders", "region=s:eu"): 3,
        ("flow/orders", "region=s:us"): 3,
        ("flow/clean", "region=s:eu"): 2,
        ("flow/clean", "region=s:us"): 2,
        ("flow/regions", ""): 2,
        ("flow/doubtful", ""): 1,
    }
    states = {key: each.state for key, each in made.items()}
    assert states.pop(("flow/doubtful", "")) == state_pb2.MATERIALIZATION_STATE_QUARANTINED
    assert set(states.values()) == {state_pb2.MATERIALIZATION_STATE_PROMOTED}
    orders, clean = made["flow/orders", "region=s:eu"], made["flow/clean", "region=s:eu"]
    (read,) = clean.output.inputs
    assert (read.asset_key, read.partition_key) == ("flow/orders", "region=s:eu")
    assert read.materialization_id == orders.materialization_id
    # The report stores its data itself.
    assert ("flow/report", "") not in made


def test_join_reads_the_values_of_all_items(mesh: Mesh, built: Built, effects: Path) -> None:
    with mesh.client("work-fan") as client, working(mesh, "work-fan", effects):
        deployed(client, built)
        for items, read in [([], "[]"), ([1, 2, 3], "[2, 4, 6]"), ([0, 5], "[None, 10]"), ([], "[]")]:
            # From the same run, and then from the promoted versions.
            for selection in ("fan.*", "fan/joined"):
                effects.write_text("")
                run = client.trigger(Run(selection, config={"items": items}))
                ended = client.wait(run.run_id)
                assert (ended.state, effects.read_text()) == (state_pb2.RUN_STATE_SUCCEEDED, read), ended


def test_paired_partitions_are_one_value_and_a_window_is_a_mapping(mesh: Mesh, built: Built, effects: Path) -> None:
    with mesh.client("work-days") as client, working(mesh, "work-days", effects):
        deployed(client, built)
        run = client.trigger(Run("days.*", partitions=["day=d:2026-01-01", "day=d:2026-01-02"]))
        assert client.wait(run.run_id).state == state_pb2.RUN_STATE_SUCCEEDED, tasks(client, run)
    assert sorted(effects.read_text().splitlines()) == ["2026-01-01 []", "2026-01-02 [1]"]


def test_source_is_read_through_a_parameter(mesh: Mesh, built: Built, effects: Path) -> None:
    with mesh.client("work-fed") as client, working(mesh, "work-fed", effects):
        run = deployed(client, built).trigger(Run("fed.*"))
        assert client.wait(run.run_id).state == state_pb2.RUN_STATE_SUCCEEDED
        assert effects.read_text() == "a price of 2"


def until_written(effects: Path) -> None:
    """Waits until user code has begun."""
    wait_until(lambda: effects.exists() and effects.read_text(), "user code has begun")


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(CODE.splitlines(), 1) if text in line)


def test_worker_returns_its_attempts_on_shutdown(mesh: Mesh, built: Built, effects: Path) -> None:
    with mesh.client("work-leave") as client:
        run = deployed(client, built).trigger(Run("slow.*"))
        with working(mesh, "work-leave", effects, "--drain-grace", "4") as first:
            until_written(effects)
            first.send_signal(signal.SIGTERM)
            assert first.wait() == 0
        effects.with_name("go").touch()
        # The second worker has another folder, so only the first can have reported the
        # interruption.
        with working(mesh, "work-leave", effects, "--state", str(effects.with_name("other"))):
            # An interruption is not a failure, so the only allowed attempt remains.
            assert client.wait(run.run_id).state == state_pb2.RUN_STATE_SUCCEEDED
        assert effects.read_text().splitlines() == ["slow/slow 1 1", "slow/slow 2 2"]


def test_f13_outcome_survives_its_worker(mesh: Mesh, built: Built, effects: Path) -> None:
    line = Line(mesh.url)
    outcomes = effects.with_name("state") / "outcomes"
    with mesh.client("work-spool") as client:
        run = deployed(client, built).trigger(Run("slow.*"))
        with working(mesh, "work-spool", effects, url=line.url) as first:
            until_written(effects)
            # The connection is cut while user code runs; its outcome reaches the disk only.
            line.refuse = 1_000_000
            line.cut()
            effects.with_name("go").touch()
            wait_until(
                lambda: any(file.stat().st_size for file in outcomes.glob("*.outcomes")), "the outcome is on disk"
            )
            first.kill()
            first.wait()
        line.close()
        with working(mesh, "work-spool", effects) as second:
            assert client.wait(run.run_id).state == state_pb2.RUN_STATE_SUCCEEDED
            second.send_signal(signal.SIGTERM)
            assert second.wait() == 0
        assert effects.read_text().splitlines() == ["slow/slow 1 1"]
    assert not list(outcomes.iterdir())


def test_two_workers_do_not_share_a_folder(mesh: Mesh, effects: Path) -> None:
    state = effects.with_name("state")
    with working(mesh, "work-alone", effects):
        wait_until((state / "lock").exists, "the first worker has locked its folder")
        with working(mesh, "work-alone", effects, stderr=subprocess.PIPE) as second:
            _, stderr = second.communicate()
    assert (second.returncode, b"belongs to a worker that runs" in stderr) == (2, True), stderr


def test_f17_cancel_reaches_user_code(mesh: Mesh, built: Built, effects: Path) -> None:
    with mesh.client("work-cancel") as client, working(mesh, "work-cancel", effects):
        run = deployed(client, built).trigger(Run("slow.*"))
        until_written(effects)
        client.cancel(run.run_id)
        assert client.wait(run.run_id).state == state_pb2.RUN_STATE_CANCELLED
