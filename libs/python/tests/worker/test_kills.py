"""F8, F13: workers that are killed at every step. One checked version is promoted, and no outcome
is lost.

User code appends a line ``task_key attempt fencing_token`` to a file whenever it runs.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from servo import AllPartitions, Client, Run
from servo.build.build import Built, build
from servo.v1 import materialization_pb2, scheduler_data_pb2, state_pb2

from ..build.test_build import project
from ..mesh import TENANT, Mesh
from ..waiting import wait_until

pytestmark = pytest.mark.mesh

KILLS = 200 if os.environ.get("SERVO_FULL") else 6
PARTITIONS = 12

CODE = """
import os, signal, time
from pathlib import Path
from servo import CheckOutcome, Partitions, Retry, Static, asset, check
from servo.data import folders

PARTS = Partitions(part=Static(*(str(each) for each in range(12))))
LIMITS = {"retry": Retry(attempts=1_000, delay="50ms", max_delay="50ms"), "heartbeat_timeout": "3s", "timeout": "60s"}

def line(name, *words):
    # One write: lines of several processes do not mix.
    with open(os.path.join(os.environ["EFFECTS"], name), "ab", buffering=0) as file:
        file.write((" ".join(map(str, words)) + os.linesep).encode())

def note(context):
    part = f"[{context.partition}]" if context.partition else ""
    line(context.run_id, f"{context.asset_key}{part}:materialize", context.attempt, context.fencing_token)
    line("attempts", context.attempt_id)

def die_in(step):
    if os.environ.get("STEP") == step:
        try:
            Path(os.environ["DIED"]).touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)

class Dying(folders._Directory):
    def create(self, name, content):
        if name == "_metadata.json":
            die_in("staged")
        if name == "_commit.json":
            die_in("before the marker")
        super().create(name, content)
        if name == "_commit.json":
            die_in("after the marker")

folders._Directory = Dying

@asset(namespace="kill", **LIMITS)
def once(context):
    note(context)
    die_in("user code")
    return [context.attempt_id]

@check(once, severity="critical")
def looked_at(value):
    line("checked", value[0])
    return True

# A worker does not count as lost before the next one has started, however slow the machine is.
@asset(namespace="kill", **LIMITS | {"heartbeat_timeout": "5m", "timeout": "10m"})
def patient(context):
    note(context)
    return [context.attempt_id]

@check(patient, severity="critical")
def looked_at_patient(value):
    line("checked", value[0])
    return True

@asset(namespace="storm", partitions=PARTS, **LIMITS)
def first(context):
    note(context)
    time.sleep(0.05)
    return [context.attempt_id]

@check(first, severity="critical")
def looked_at_first(value):
    line("checked", value[0])
    return True

@asset(namespace="storm", partitions=PARTS, **LIMITS)
def second(first, context):
    assert len(first) == 1
    note(context)
    return [context.attempt_id]

@check(second, severity="critical")
def looked_at_second(value):
    line("checked", value[0])
    return True
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    made = build(project(tmp_path_factory.mktemp("project"), {"deadly.py": CODE}))
    for definition in made.manifest.assets:
        definition.timeouts.dispatch_ack.FromSeconds(300 if definition.key == "kill/patient" else 3)
    return made


@pytest.fixture
def effects(tmp_path: Path) -> Path:
    folder = tmp_path / "effects"
    folder.mkdir()
    return folder


@contextmanager
def worker(mesh: Mesh, workspace: str, effects: Path, state: str, step: str = "") -> Iterator[subprocess.Popen[bytes]]:
    environment = {
        **os.environ,
        "SERVO_URL": mesh.url,
        "SERVO_API_KEY": mesh.api_key,
        "SERVO_TENANT": TENANT,
        "SERVO_CA_FILE": str(mesh.ca_file),
        "SERVO_SERVER_NAME": "localhost",
        "EFFECTS": str(effects),
        "DIED": str(effects / "died"),
        "STEP": step,
    }
    command = [sys.executable, "-m", "tests.worker.dying", "worker", "--slots", "3", "--workspace", workspace]
    folder = Path(__file__).parents[2]
    with subprocess.Popen([*command, "--state", str(effects / state)], env=environment, cwd=folder) as process:
        try:
            yield process
        finally:
            process.kill()


def deployed(client: Client, built: Built) -> None:
    client.upload(built.archive, "SOURCE_ARCHIVE")
    client.deploy(built.manifest)


def versions(client: Client, workspace: str) -> list[materialization_pb2.Materialization]:
    request = scheduler_data_pb2.ListMaterializationsRequest(tenant=TENANT, workspace=workspace, page_size=100)
    found: list[materialization_pb2.Materialization] = []
    while True:
        page = client.scheduler.ListMaterializations(request)
        found.extend(page.materializations)
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token


def check_versions(client: Client, workspace: str, effects: Path, run_ids: list[str]) -> None:
    """One complete, checked version per task, of its winning attempt."""
    tasks = {(run_id, task.task_id): task for run_id in run_ids for task in client.tasks(run_id)}
    checked = set((effects / "checked").read_text().split())
    found = versions(client, workspace)
    assert Counter((each.run_id, each.task_id) for each in found) == dict.fromkeys(tasks, 1)
    for each in found:
        assert each.state == state_pb2.MATERIALIZATION_STATE_PROMOTED
        assert each.materialization_id in checked
        assert each.materialization_id == tasks[each.run_id, each.task_id].attempt_id
        folder = Path(each.output.uri.removeprefix("file://"))
        marker = (folder / "_commit.json").read_bytes()
        assert hashlib.sha256(marker).hexdigest() == each.output.commit_digest
        assert json.loads((folder / "data.json").read_bytes()) == [each.materialization_id]


def check_effects(effects: Path, run_ids: list[str]) -> None:
    """No attempt runs user code twice, and tokens grow with attempts."""
    for run_id in run_ids:
        lines = [line.split() for line in (effects / run_id).read_text().splitlines()]
        assert all(attempt == token for _, attempt, token in lines)
        again = {key: count for key, count in Counter((key, attempt) for key, attempt, _ in lines).items() if count > 1}
        assert not again


# Unreported attempts are repeated; outcomes on disk or answered ones are not.
@pytest.mark.parametrize(
    ("step", "attempts"),
    [
        ("before start", [2]),
        ("user code", [1, 2]),
        ("staged", [1, 2]),
        ("before the marker", [1, 2]),
        ("after the marker", [1, 2]),
        ("before finish", [1, 2]),
        ("outcome kept", [1]),
        ("after finish", [1]),
    ],
)
def test_f13_a_worker_is_killed_in_each_step(
    quick_mesh: Mesh, built: Built, effects: Path, step: str, attempts: list[int]
) -> None:
    workspace, asset = f"kill-{step.replace(' ', '-')}", "patient" if attempts == [1] else "once"
    with quick_mesh.client(workspace) as client:
        deployed(client, built)
        run = client.trigger(Run(f"kill/{asset}"))
        with worker(quick_mesh, workspace, effects, "state", step) as first:
            assert first.wait() == -signal.SIGKILL
        assert (effects / "died").exists()
        with worker(quick_mesh, workspace, effects, "state") as second:
            assert client.wait(run.run_id).state == state_pb2.RUN_STATE_SUCCEEDED
            # The outcome that the first worker left is answered as well.
            outcomes = effects / "state/outcomes"
            wait_until(lambda: not any(file.stat().st_size for file in outcomes.iterdir()), "all outcomes are reported")
            second.send_signal(signal.SIGTERM)
            assert second.wait() == 0
        check_versions(client, workspace, effects, [run.run_id])
    written = (effects / run.run_id).read_text().splitlines()
    assert written == [f"kill/{asset}:materialize {attempt} {attempt}" for attempt in attempts]
    assert list((effects / "state/outcomes").iterdir()) == []


def test_chaos_workers_are_killed_at_random(quick_mesh: Mesh, built: Built, effects: Path) -> None:
    seed = int(os.environ.get("SEED", time.time_ns() % 1_000_000))
    print(f"SEED={seed}")
    chance = random.Random(seed)
    workspace = f"storm-{seed}"
    run_ids: list[str] = []
    with quick_mesh.client(workspace) as client:
        deployed(client, built)
        for kill in range(KILLS):
            if kill % 3 == 0:
                run_ids.append(client.trigger(Run("storm.*", partitions=AllPartitions())).run_id)
            with worker(quick_mesh, workspace, effects, f"state-{kill % 2}") as victim:
                # Not a wait for a condition: the random time decides when the worker dies, possibly
                # during its start.
                time.sleep(chance.uniform(0.2, 3.0))
                victim.kill()
        with worker(quick_mesh, workspace, effects, "state-0"), worker(quick_mesh, workspace, effects, "state-1"):
            for run_id in run_ids:
                assert client.wait(run_id).state == state_pb2.RUN_STATE_SUCCEEDED
        check_versions(client, workspace, effects, run_ids)
    check_effects(effects, run_ids)
