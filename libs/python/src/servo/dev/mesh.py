"""A local mesh: all services on a private Postgres, with throw-away certificates."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servo.errors import ServoError

from . import process
from .binary import standalone

# Services drain first, then Postgres writes a checkpoint.
_STOP_SECONDS = 45.0


class MeshFailed(ServoError):
    """The mesh did not start, or ended unexpectedly."""


@dataclass(frozen=True, slots=True)
class Mesh:
    url: str
    tenant: str
    workspace: str
    api_key_file: Path
    worker_key_file: Path
    ca_file: Path
    server_name: str
    logs: Path
    process: subprocess.Popen[str]

    @property
    def environment(self) -> dict[str, str]:
        """The variables that commands need to connect to it."""
        return {
            "SERVO_URL": self.url,
            "SERVO_API_KEY": self.api_key_file.read_text().strip(),
            "SERVO_TENANT": self.tenant,
            "SERVO_WORKSPACE": self.workspace,
            "SERVO_CA_FILE": str(self.ca_file),
            "SERVO_SERVER_NAME": self.server_name,
        }

    @property
    def worker_environment(self) -> dict[str, str]:
        """The same with the key of a worker, which may do nothing else."""
        return self.environment | {"SERVO_API_KEY": self.worker_key_file.read_text().strip()}

    @property
    def facts(self) -> dict[str, str]:
        """The same information without the key."""
        return {
            "url": self.url,
            "tenant": self.tenant,
            "workspace": self.workspace,
            "api_key_file": str(self.api_key_file),
            "ca_file": str(self.ca_file),
            "server_name": self.server_name,
        }

    def check(self) -> None:
        """Raises if the mesh has ended."""
        if self.process.poll() is not None:
            raise MeshFailed(f"the server ended: {_last_output(self.process)}; its logs are in {self.logs}")


@contextmanager
def running(folder: Path, workspace: str) -> Iterator[Mesh]:
    """Its data is kept in the folder and reused by the next start."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [str(standalone()), "dev", "--json", "--dir", str(folder)]
    started = process.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        facts = _read_facts(started)
        gateway = next(each for each in facts["services"] if each["service"] == "gateway")
        yield Mesh(
            url=gateway["address"],
            tenant=facts["tenant"],
            workspace=workspace,
            api_key_file=Path(facts["api_key_file"]),
            worker_key_file=Path(facts["api_key_files"]["worker"]),
            ca_file=Path(facts["ca_file"]),
            server_name="localhost",
            logs=folder / "logs",
            process=started,
        )
    finally:
        process.stop(started, _STOP_SECONDS)


def _read_facts(started: subprocess.Popen[str]) -> Any:
    """The JSON object that the server prints once all services are healthy."""
    assert started.stdout
    lines: list[str] = []
    for line in started.stdout:
        lines.append(line)
        if line == "}\n":
            return json.loads("".join(lines))
    started.wait()
    raise MeshFailed(f"the server did not start: {_last_output(started)}")


def _last_output(ended: subprocess.Popen[str]) -> str:
    words = ended.stderr.read().strip() if ended.stderr else ""
    return words.removeprefix("servo: ").replace("servo: ", "") or f"it printed nothing (exit code {ended.returncode})"


def announce(mesh: Mesh, file: Path) -> None:
    """Lets commands find the mesh. The file contains the path of the key, not the key itself."""
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    partial.write_text(json.dumps(mesh.facts, indent=2) + "\n")
    partial.replace(file)
