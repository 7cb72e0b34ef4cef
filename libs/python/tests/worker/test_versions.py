"""Two versions of a project on one worker at the same time, each with its locked packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from servo import Run
from servo.build.build import Built, build
from servo.v1 import state_pb2

from ..build.test_build import project
from ..mesh import Mesh
from ..waiting import wait_until
from .test_worker import deployed, until_written, working
from .wheels import wheel

pytestmark = pytest.mark.mesh

CODE = """
import os, time
from pathlib import Path
from servo import asset

EFFECTS = Path(os.environ.get("EFFECTS", "/"))

@asset(namespace="side", retry=1)
def versioned():
    import tiny
    with EFFECTS.open("a") as file:
        print("NUMBER", tiny.VERSION, file=file)
    while not EFFECTS.with_name("go").exists():
        time.sleep(0.05)
"""


def version(folder: Path, number: str, requirement: str) -> Built:
    folder.mkdir()
    return build(
        project(folder, {"work.py": CODE.replace("NUMBER", number), "requirements.txt": f"tiny=={requirement}\n"})
    )


def test_two_versions_run_side_by_side(mesh: Mesh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels, effects = tmp_path / "wheels", tmp_path / "effects"
    wheels.mkdir()
    wheel(wheels, "tiny", "1.0")
    wheel(wheels, "tiny", "2.0")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    old, new = version(tmp_path / "old", "first", "1.0"), version(tmp_path / "new", "second", "2.0")
    broken = version(tmp_path / "broken", "third", "3.0")
    with mesh.client("side") as client, working(mesh, "side", effects):
        first = deployed(client, old).trigger(Run("side.*"))
        until_written(effects)
        second = deployed(client, new).trigger(Run("side.*"))
        both = ["first 1.0", "second 2.0"]
        wait_until(lambda: effects.read_text().splitlines() == both, "both versions run")
        effects.with_name("go").touch()
        for run in (first, second):
            assert client.wait(run.run_id).state == state_pb2.RUN_STATE_SUCCEEDED
        third = deployed(client, broken).trigger(Run("side.*"))
        assert client.wait(third.run_id).state == state_pb2.RUN_STATE_FAILED
        (task,) = client.tasks(third.run_id)
    assert task.error.category == state_pb2.ERROR_CATEGORY_CONFIGURATION
    assert "its requirements cannot be installed here; pip reports:" in task.error.message
    assert "No matching distribution found for tiny==3.0" in task.error.message
