"""Hostile tasks on a real mesh: each ends as specified, and the worker continues."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from servo import Run
from servo.build.build import Built, build
from servo.v1 import callback_pb2, scheduler_data_pb2, state_pb2

from ..build.test_build import project
from ..mesh import TENANT, Mesh
from ..waiting import wait_until
from .test_worker import deployed, working

pytestmark = pytest.mark.mesh

CODE = """
import os, signal, subprocess, sys, time
from servo import Fatal, Retry, asset, checks

ONCE = {"retry": 1, "namespace": "bad"}
BRIEF = {"timeout": "2s", **ONCE}

@asset(**BRIEF)
def hangs():
    os.read(os.pipe()[0], 1)

@asset(**BRIEF)
def spins():
    while True:
        pass

@asset(**BRIEF)
def ignores():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(1)

@asset(**BRIEF)
def forks():
    # One in the group, two in sessions of their own, and a daemon without a parent.
    sleep = ["sleep", os.environ["MARK"]]
    subprocess.Popen(sleep)
    subprocess.Popen(sleep, start_new_session=True)
    subprocess.Popen(sleep, start_new_session=True, env={"PATH": os.environ["PATH"]})
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp("sleep", sleep)
        os._exit(0)
    os.wait()
    time.sleep(60)

@asset(**ONCE)
def strays():
    subprocess.Popen(["sleep", os.environ["MARK"]], start_new_session=True, env={"PATH": os.environ["PATH"]})

@asset(**ONCE)
def prints():
    for _ in range(1600):
        sys.stdout.write("y" * 65_535 + os.linesep)

@asset(**ONCE)
def raises():
    class Odd(Exception):
        def __init__(self):
            super().__init__(lambda: None, open(os.devnull))
        def __reduce__(self):
            raise RuntimeError("cannot be pickled")
        def __str__(self):
            raise RuntimeError("cannot be printed")
    raise Odd

@asset(**ONCE)
def dies():
    os.abort()

@asset(**ONCE)
def leaves():
    os._exit(0)

@asset(namespace="fine", checks=[checks.row_count(at_least=10_000_000).on(severity="critical")])
def many_rows():
    import pyarrow
    return pyarrow.table({"number": pyarrow.array(range(10_000_000))})

@asset(namespace="fine")
def counted(many_rows):
    assert many_rows["number"][-1].as_py() == 9_999_999
    print("counted", many_rows.num_rows)

@asset(namespace="fine")
def many_values():
    return list(range(10_000_000))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    os.environ["MARK"] = "1000"
    return build(project(tmp_path_factory.mktemp("project"), {"hostile.py": CODE}))


def sleeping(mark: str) -> list[str]:
    """Running processes with this argument."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if words[:2] == [b"sleep", mark.encode()]:
            found.append(folder.name)
    return found


def test_f05_hostile_tasks_end_and_leave_no_processes(
    quick_mesh: Mesh, built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = f"{100_000 + os.getpid()}.5"
    monkeypatch.setenv("MARK", mark)
    workspace = "hostile"
    with quick_mesh.client(workspace) as client, working(quick_mesh, workspace, tmp_path / "effects", "--slots", "4"):
        run = deployed(client, built).trigger(Run("bad.*"))
        assert client.wait(run.run_id).state == state_pb2.RUN_STATE_FAILED
        found = {task.task_key.removeprefix("bad/").partition(":")[0]: task for task in client.tasks(run.run_id)}
        timed_out = {"hangs", "spins", "ignores", "forks"}
        assert {name for name, task in found.items() if task.error.category == state_pb2.ERROR_CATEGORY_TIMEOUT} | {
            name for name, task in found.items() if task.reason == state_pb2.TRANSITION_REASON_TIMED_OUT
        } == timed_out
        succeeded = {name for name, task in found.items() if task.state == state_pb2.TASK_STATE_SUCCEEDED}
        assert succeeded == {"prints", "strays"}
        assert found["raises"].error.type == "Odd"
        assert found["raises"].error.category == state_pb2.ERROR_CATEGORY_USER_CODE
        assert found["dies"].error.message == "its process was ended by signal SIGABRT"
        assert found["leaves"].error.message == "its process ended with exit code 0"
        assert found["leaves"].error.hint.startswith("look for what ends a process: os._exit")
        # All descendants end with a killed or finished task, in any session.
        wait_until(lambda: not sleeping(mark), "no process that a task started is left")
        request = callback_pb2.TailLogsRequest(
            tenant=TENANT, workspace=workspace, run_id=run.run_id, task_id=found["prints"].task_id
        )
        lines = [line for page in client.callback.TailLogs(request) for line in page.lines]
        # Only a part of the 100 MB is stored.
        assert 0 < sum(len(line.text) for line in lines) <= 10_000_000
        assert max(len(line.text) for line in lines) == 16 * 1024

        # The same worker runs further tasks.
        run = client.trigger(Run("fine.*"))
        assert client.wait(run.run_id).state == state_pb2.RUN_STATE_SUCCEEDED
        listed = scheduler_data_pb2.ListMaterializationsRequest(tenant=TENANT, workspace=workspace)
        rows = {
            each.output.asset_key: each.output.row_count
            for each in client.scheduler.ListMaterializations(listed).materializations
        }
    assert rows == {"fine/many_rows": 10_000_000, "fine/many_values": 10_000_000}
