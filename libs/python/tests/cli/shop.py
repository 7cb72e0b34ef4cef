"""The project that ``servo init`` makes, and commands in it."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from servo.cli.main import main

from ..build.test_build import SERVO
from ..mesh import TENANT, Mesh

# The till fails once on the first day and never on the second.
FLAKY_DAY, CALM_DAY = "2025-03-01", "2025-03-02"


@dataclass(frozen=True, slots=True)
class Shop:
    folder: Path
    environment: Mapping[str, str]

    @property
    def code(self) -> Path:
        return self.folder / "src/shop/assets.py"

    def change(self, before: str, after: str) -> None:
        text = self.code.read_text()
        assert before in text
        self.code.write_text(text.replace(before, after))

    def servo(self, *words: str, **changed: str) -> subprocess.CompletedProcess[str]:
        environment = {**plain_environment(), **self.environment, **changed}
        if words[0] not in ("init", "build", "deploy", "worker"):
            return _here(self.folder, words, environment)
        command = [SERVO, *words]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)

    def ok(self, *words: str) -> str:
        """The output of a command that must succeed."""
        done = self.servo(*words)
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    @contextmanager
    def worker(self, *options: str) -> Iterator[None]:
        command = [sys.executable, "-m", "servo.cli", "worker", "--state", str(self.folder / ".servo/worker"), *options]
        with subprocess.Popen(
            [*command, "--json"], env={**plain_environment(), **self.environment}, stderr=subprocess.DEVNULL
        ) as process:
            try:
                yield
            finally:
                process.terminate()


def _here(folder: Path, words: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs a command in this process, which has all imports already; not for commands that import a project."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, environment, clear=True),
        mock.patch.object(sys, "argv", ["servo", *words]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def plain_environment() -> dict[str, str]:
    """The environment without variables that name a server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SERVO_")}


def new_shop(folder: Path, environment: Mapping[str, str] | None = None) -> Shop:
    made = Shop(folder, environment or {})
    folder.mkdir(parents=True, exist_ok=True)
    made.ok("init")
    return made


def shop_on(mesh: Mesh, workspace: str, folder: Path) -> Shop:
    return new_shop(
        folder,
        {
            "SERVO_URL": mesh.url,
            "SERVO_API_KEY": mesh.api_key,
            "SERVO_TENANT": TENANT,
            "SERVO_WORKSPACE": workspace,
            "SERVO_CA_FILE": str(mesh.ca_file),
            "SERVO_SERVER_NAME": "localhost",
        },
    )
