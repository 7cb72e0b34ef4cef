"""A real mesh for tests: nine processes with mutual TLS, a private Postgres, and a configurable test worker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servo import AsyncClient, Client

TENANT = "demo"


@dataclass(frozen=True, slots=True)
class Mesh:
    url: str
    api_key: str
    ca_file: Path
    binaries: Path
    folder: Path

    def client(self, workspace: str, *, url: str = "", api_key: str = "") -> Client:
        return Client(
            url or self.url,
            api_key=api_key or self.api_key,
            tenant=TENANT,
            workspace=workspace,
            ca_file=self.ca_file,
            server_name="localhost",
        )

    def async_client(self, workspace: str, *, url: str = "") -> AsyncClient:
        return AsyncClient(
            url or self.url,
            api_key=self.api_key,
            tenant=TENANT,
            workspace=workspace,
            ca_file=self.ca_file,
            server_name="localhost",
        )

    @contextmanager
    def stopped(self, service: str) -> Iterator[None]:
        """Stops a service with SIGSTOP, so that it neither answers nor ends."""
        process = self._process_of(service)
        os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(process, signal.SIGCONT)

    def _process_of(self, service: str) -> int:
        """Finds the process by its configuration file."""
        configured = f"SERVO_CONFIG={self.folder.resolve()}/config/{service}.toml".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if configured in (folder / "environ").read_bytes().split(b"\0"):
                    return int(folder.name)
        raise AssertionError(f"no process of {service} runs")

    @contextmanager
    def worker(self) -> Iterator[None]:
        """Runs every task whose asset names a handler, as the handler's configuration says."""
        command = [str(self.binaries / "test_worker"), "--dispatcher", self.url, "--ca", str(self.ca_file)]
        options = ["--server-name", "localhost", "--tenant", TENANT, "--slots", "8"]
        environment = {**os.environ, "SERVO_API_KEY": self.api_key}
        with subprocess.Popen([*command, *options], env=environment, stdout=subprocess.DEVNULL) as process:
            try:
                yield
            finally:
                process.kill()


@contextmanager
def mesh(binaries: Path, folder: Path, **settings: str) -> Iterator[Mesh]:
    """``settings`` are variables of the services, such as ``SERVO_DISPATCHER__LEASE_TTL="3s"``."""
    standalone = binaries / "servo-standalone"
    assert standalone.exists(), (
        f"{standalone} is not built: run `make test`, or set SERVO_BIN_DIR to a folder that has it"
    )
    command = [str(standalone), "dev", "--json", "--dir", str(folder)]
    environment = {**os.environ, **settings}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            started = _read_object(process)
            gateway = next(each for each in started["services"] if each["service"] == "gateway")
            api_key = Path(started["api_key_file"]).read_text().strip()
            yield Mesh(gateway["address"], api_key, Path(started["ca_file"]), binaries, folder)
        finally:
            process.send_signal(signal.SIGTERM)


def _read_object(process: subprocess.Popen[str]) -> Any:
    assert process.stdout
    assert process.stderr
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line)
        if line == "}\n":
            return json.loads("".join(lines))
    raise AssertionError(f"the mesh did not start: {process.stderr.read()}")
