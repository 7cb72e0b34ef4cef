"""``servo deploy`` against a real mesh."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from ..mesh import TENANT, Mesh
from .test_build import NOISE, SERVO, shop

pytestmark = pytest.mark.mesh


def deploy(mesh: Mesh, folder: Path, *options: str, **changed: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "SERVO_URL": mesh.url,
        "SERVO_API_KEY": mesh.api_key,
        "SERVO_TENANT": TENANT,
        "SERVO_WORKSPACE": "deploys",
        "SERVO_CA_FILE": str(mesh.ca_file),
        "SERVO_SERVER_NAME": "localhost",
        **changed,
    }
    command = [SERVO, "deploy", str(folder), *options]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, input="n\n")


def test_deploy_shows_the_difference(mesh: Mesh, tmp_path: Path) -> None:
    folder = shop(tmp_path)
    for options in ([], ["--json"]):
        refused = deploy(mesh, folder, *options)
        assert (refused.returncode, "give --yes" in refused.stderr) == (2, True), refused
        assert "+ raw/orders" in refused.stdout + refused.stderr
        assert "deployed" not in refused.stdout
    first = deploy(mesh, folder, "--yes")
    assert (first.returncode, first.stdout.splitlines()[-1].split(":")[0]) == (0, "deployed version 1"), first.stderr
    assert "  ! schedules[0]  1 schedule: schedules are not served yet" in first.stdout
    assert "nothing changes" in deploy(mesh, folder, "--dry-run").stdout
    source = folder / "src/shop/assets.py"
    source.write_text(source.read_text().replace('asset(namespace="raw", ', 'asset(namespace="raw", pool="slow", '))
    changed = deploy(mesh, folder, "--yes")
    assert "~ raw/orders" in changed.stdout
    assert "pool" in changed.stdout


def test_json_output_is_not_mixed_with_project_output(mesh: Mesh, tmp_path: Path) -> None:
    folder = shop(tmp_path)
    source = folder / "src/shop/assets.py"
    source.write_text(f"{NOISE}\n{source.read_text()}")
    answer = deploy(mesh, folder, "--yes", "--json", SERVO_WORKSPACE="noisy")
    assert json.loads(answer.stdout)["deployment"]["version"]
    assert [each["field"] for each in json.loads(answer.stdout)["warnings"]] == ["schedules[0]"]
    assert "a word of the module" in answer.stderr


def test_failures_have_exit_codes(mesh: Mesh, tmp_path: Path) -> None:
    folder = shop(tmp_path)
    assert deploy(mesh, folder, "--yes", SERVO_API_KEY="servo_wrong").returncode == 4
    assert deploy(mesh, folder, "--yes", SERVO_URL="https://127.0.0.1:1").returncode == 7
    assert deploy(mesh, folder, "--yes", SERVO_URL="nowhere").returncode == 2
