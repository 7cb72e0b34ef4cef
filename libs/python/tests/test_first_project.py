"""docs/guide/first-project.md, command by command, with the wheel in a new venv."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from .cli.shop import plain_environment
from .waiting import read_until

pytestmark = pytest.mark.mesh

WHEEL_IN_THE_GUIDE = "file:///path/to/wheel"
GOOD, BROKEN = "FROM clean_orders GROUP BY", "FROM revenu GROUP BY"


@dataclass(slots=True)
class NewUser:
    """A new user: a shell, a second one for ``servo dev``, and an editor."""

    folder: Path
    wheel: Path
    environment: dict[str, str]
    dev: subprocess.Popen[str] | None = None
    outputs: dict[str, str] = field(default_factory=dict)

    def type(self, command: str) -> int:
        if command == "servo dev":
            return self._start_dev()
        if command.startswith("cd "):
            self.folder /= command.removeprefix("cd ")
            return 0
        if command.startswith("export PATH="):
            self.environment["PATH"] = f"{self.folder}/venv/bin:{self.environment['PATH']}"
            return 0
        words = command.replace(WHEEL_IN_THE_GUIDE, self.wheel.as_uri()).replace("python3", sys.executable)
        done = subprocess.run(
            words, shell=True, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        self.outputs[command] = done.stdout + done.stderr
        return done.returncode

    def edit(self, before: str, after: str) -> None:
        code = self.folder / "src/shop/assets.py"
        assert before in code.read_text()
        code.write_text(code.read_text().replace(before, after))

    def wait_for_dev(self, words: str) -> None:
        assert self.dev
        read_until(self.dev, words)

    def _start_dev(self) -> int:
        self.dev = subprocess.Popen(
            ["servo", "dev"], cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True
        )
        self.wait_for_dev("deployed version 1")
        return 0


@pytest.fixture
def new_user(repository: Path, tmp_path: Path) -> Iterator[NewUser]:
    binaries = Path(os.environ.get("SERVO_BIN_DIR", repository / "target/debug"))
    made = subprocess.run(
        [repository / "scripts/wheel", binaries / "servo-standalone", tmp_path / "dist"],
        capture_output=True,
        text=True,
        check=True,
    )
    # The same versions as in all other tests.
    constraint = {"PIP_CONSTRAINT": str(repository / "libs/python/requirements-dev.txt")}
    folder = tmp_path / "home"
    folder.mkdir()
    one = NewUser(folder, Path(made.stdout.strip()), {**plain_environment(), **constraint})
    yield one
    if one.dev:
        one.dev.send_signal(signal.SIGINT)
        one.dev.wait()


def commands(guide: str) -> Iterator[tuple[str, str]]:
    """Each command with its heading."""
    heading = ""
    for line in guide.splitlines():
        if line.startswith("#"):
            heading = line.strip("# ")
        if line.startswith("$ "):
            yield heading, line.removeprefix("$ ")


def test_commands_of_the_guide_work(new_user: NewUser, repository: Path) -> None:
    before = ""
    for heading, command in commands((repository / "docs/guide/first-project.md").read_text()):
        if heading != before and heading == "Break it":
            new_user.edit(GOOD, BROKEN)
            new_user.wait_for_dev("deployed version 2")
        if heading != before and heading == "Fix it":
            new_user.edit(BROKEN, GOOD)
            new_user.wait_for_dev("deployed version 3")
        before = heading
        broken = heading == "Break it" and command.startswith("servo run ")
        assert new_user.type(command) == (1 if broken else 0), f"{command}: {new_user.outputs[command]}"

    assert re.search(r"coffee +\d+ +\d", new_user.outputs["servo assets preview shop/daily_revenue"])
    failed = new_user.outputs["servo run '+shop/daily_revenue' --partition latest --wait"]
    for output in (failed, new_user.outputs["servo runs show"]):
        assert re.search(
            r"    at src/shop/assets\.py:\d+, called at src/shop/assets\.py:\d+\n    hint: correct the function", output
        ), output
    assert "the tills wrote" in new_user.outputs["servo runs logs"]
    assert "✓ shop/daily_revenue" in new_user.outputs["servo runs retry --wait"]
    states = [line.split()[1] for line in new_user.outputs["servo runs list"].splitlines()]
    assert states == ["STATE", "SUCCEEDED", "FAILED", "SUCCEEDED"]
