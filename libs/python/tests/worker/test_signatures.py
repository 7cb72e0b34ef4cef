"""F14: attempts on a real mesh that outlive their signatures, also in an outage."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from servo import Client, Run
from servo.build.build import Built, build
from servo.client.errors import NotAuthenticated
from servo.model import presign
from servo.v1 import callback_pb2, run_pb2, state_pb2

from ..build.test_build import project
from ..mesh import TENANT, Mesh
from ..waiting import wait_until
from .noting import NOTES, envelope_in, lines_in
from .test_worker import deployed

pytestmark = pytest.mark.mesh

LIVES = 10 if os.environ.get("SERVO_FULL") else 3
# The asset's heartbeat timeout plus twice the mesh's grace.
LIFE_SECONDS = 4

CODE = """
import time
from pathlib import Path
from servo import asset

@asset(namespace="long", heartbeat_timeout="3s", retry=1)
def lasting(context):
    ends = time.monotonic() + context.config["seconds"]
    number = 0
    while time.monotonic() < ends:
        print(number, flush=True)
        number += 1
        time.sleep(0.25)

@asset(namespace="long", heartbeat_timeout="5s", retry=1)
def waiting(context):
    number = 0
    while not Path(context.config["go"]).exists():
        print(number, flush=True)
        number += 1
        time.sleep(0.25)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return build(project(tmp_path_factory.mktemp("project"), {"lasting.py": CODE}))


@contextmanager
def working(mesh: Mesh, workspace: str, notes: Path) -> Iterator[None]:
    environment = {
        **os.environ,
        "SERVO_URL": mesh.url,
        "SERVO_API_KEY": mesh.api_key,
        "SERVO_TENANT": TENANT,
        "SERVO_CA_FILE": str(mesh.ca_file),
        "SERVO_SERVER_NAME": "localhost",
        NOTES: str(notes),
    }
    command = [sys.executable, "-m", "tests.worker.noting", "worker", "--workspace", workspace]
    folder = Path(__file__).parents[2]
    with subprocess.Popen([*command, "--state", str(notes / "state")], env=environment, cwd=folder) as process:
        try:
            yield
        finally:
            process.kill()


def the_task(client: Client, run_id: str) -> run_pb2.Task:
    (task,) = client.tasks(run_id)
    return task


def succeeded_at_once(client: Client, run_id: str) -> run_pb2.Task:
    assert client.wait(run_id).state == state_pb2.RUN_STATE_SUCCEEDED
    task = the_task(client, run_id)
    assert (task.attempt, task.failures) == (1, 0)
    return task


def check_log(client: Client, workspace: str, run_id: str) -> None:
    """Every line arrived once and in order."""
    request = callback_pb2.TailLogsRequest(tenant=TENANT, workspace=workspace, run_id=run_id)
    texts = [line.text for page in client.callback.TailLogs(request) for line in page.lines]
    assert texts == [str(number) for number in range(len(texts))]
    assert texts


def check_expired(client: Client, notes: Path, presigned: str) -> None:
    envelope = envelope_in(notes)
    beat = callback_pb2.HeartbeatRequest(
        tenant=envelope.tenant,
        workspace=envelope.workspace,
        run_id=envelope.run_id,
        attempt_id=envelope.attempt_id,
        task=envelope.task,
    )
    with pytest.raises(NotAuthenticated) as refused:
        client.callback.Heartbeat(beat, metadata=(("servo-presigned", presigned),))
    assert refused.value.details.reason == "SIGNATURE_EXPIRED"


def test_f14_a_task_outlives_its_signatures_several_times(forgetful_mesh: Mesh, built: Built, tmp_path: Path) -> None:
    workspace = "several-lives"
    with forgetful_mesh.client(workspace) as client, working(forgetful_mesh, workspace, tmp_path):
        config = {"seconds": LIVES * LIFE_SECONDS + 1}
        run = deployed(client, built).trigger(Run("long/lasting", config=config))
        task = succeeded_at_once(client, run.run_id)
        check_log(client, workspace, run.run_id)
        assert lines_in(tmp_path, "refusals") == []
        first, *renewed = lines_in(tmp_path, "beats")
        life = presign.read(first).expires - task.start_time.seconds
        assert life <= LIFE_SECONDS
        assert task.end_time.seconds - task.start_time.seconds >= LIVES * life
        # Renewed signatures do not live longer: none of the first ones is valid at the end.
        ended_with = [path for path in renewed if presign.read(path).expires >= task.end_time.seconds]
        assert 0 < len(ended_with) < len(renewed) / 2
        check_expired(client, tmp_path, first)
        check_expired(client, tmp_path, renewed[0])


def test_f14_heartbeats_resume_after_an_outage_longer_than_the_signature(
    forgetful_mesh: Mesh, built: Built, tmp_path: Path
) -> None:
    workspace, go = "way-back", tmp_path / "go"
    with forgetful_mesh.client(workspace) as client, working(forgetful_mesh, workspace, tmp_path):
        run = deployed(client, built).trigger(Run("long/waiting", config={"go": str(go)}))
        # The paths of the envelope, of the start and of a heartbeat.
        wait_until(lambda: len(lines_in(tmp_path, "beats")) >= 3, "the attempt has sent a heartbeat")
        with forgetful_mesh.stopped("callback"):
            # Signatures expire by the wall clock.
            wait_until(
                lambda: time.time() >= presign.read(lines_in(tmp_path, "beats")[-1]).expires + 1,
                "the last signature has expired",
            )
            *_, last = lines_in(tmp_path, "beats")

        def renewed() -> bool:
            assert the_task(client, run.run_id).state == state_pb2.TASK_STATE_RUNNING
            return lines_in(tmp_path, "beats")[-1] != last

        wait_until(renewed, "the attempt has a new signature")
        check_expired(client, tmp_path, last)
        go.touch()
        succeeded_at_once(client, run.run_id)
        check_log(client, workspace, run.run_id)
    # Only reports that waited during the outage were refused, and each was accepted at the second
    # try.
    assert set(lines_in(tmp_path, "refusals")) == {"ERROR_REASON_SIGNATURE_EXPIRED"}
