"""Help and start of the command line, and how little they import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from servo.cli.exit_codes import exit_code
from servo.cli.main import COMMANDS, app, overview
from servo.client.errors import Conflict, NotAllowed, NotFound, TimedOut, Unavailable
from servo.errors import InvalidValue

from ..build.test_build import SERVO

# Packages that take as long to import as help may take to print.
HEAVY = ("click", "rich", "grpc", "google", "asyncio", "pyarrow", "duckdb", "inspect")


def loaded(code: str, heavy: tuple[str, ...]) -> set[str]:
    listed = f"import sys\n{code}\nprint(*(name for name in {heavy} if name in sys.modules), file=sys.stderr)"
    # Coverage measurement imports packages too.
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run([sys.executable, "-c", listed], env=plain, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_help_and_definitions_import_no_heavy_packages() -> None:
    assert loaded("from servo.cli.main import overview\noverview()", HEAVY) == set()
    assert loaded("from servo import asset", HEAVY[:-1]) == set()


def test_help_names_every_command_and_what_it_does() -> None:
    done = subprocess.run([SERVO, "--help"], capture_output=True, text=True, check=True)
    words = " ".join(done.stdout.split())
    for name, purpose in COMMANDS.items():
        assert f" {name} {purpose}" in words
    assert "7 server unreachable" in words


def test_no_command_prints_help_and_exits_2() -> None:
    done = subprocess.run([SERVO], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, overview())


@pytest.mark.parametrize("name", COMMANDS)
def test_command_help_is_the_same_alone_and_with_all_commands(name: str) -> None:
    alone, among = (CliRunner().invoke(app(names), [name, "--help"]) for names in ([name], COMMANDS))
    assert (alone.exit_code, alone.output) == (0, among.output)
    assert COMMANDS[name].split()[0] in alone.output


def test_shells_complete_commands() -> None:
    line = {"_SERVO_COMPLETE": "bash_complete", "COMP_WORDS": "servo wo", "COMP_CWORD": "1"}
    done = subprocess.run([SERVO], env={**os.environ, **line}, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["plain,worker"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_is_installed_once(tmp_path: Path, shell: str) -> None:
    environment = {**os.environ, "SHELL": f"/bin/{shell}", "HOME": str(tmp_path)}
    for _ in range(2):
        subprocess.run([SERVO, "--install-completion"], env=environment, capture_output=True, check=True)
    shown = subprocess.run([SERVO, "--show-completion"], env=environment, capture_output=True, text=True, check=True)
    (script,) = tmp_path.rglob(f"servo.{shell}")
    assert script.read_text().strip() == shown.stdout.strip()
    if shell == "zsh":
        assert (tmp_path / ".zshrc").read_text() == f"source '{script}'\n"


def test_completion_of_an_unknown_shell_is_refused() -> None:
    done = subprocess.run(
        [SERVO, "--show-completion"],
        env={**os.environ, "SHELL": "/bin/csh"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "no completion for the shell csh" in done.stderr) == (2, True)


def test_mistyped_command_gets_a_suggestion() -> None:
    done = subprocess.run([SERVO, "buidl"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Did you mean 'build'?" in done.stderr


@pytest.mark.parametrize(
    ("kind", "code"), [(NotFound, 3), (NotAllowed, 4), (Conflict, 5), (TimedOut, 6), (Unavailable, 7)]
)
def test_each_refusal_has_its_exit_code(kind: type[Exception], code: int) -> None:
    assert exit_code(kind.__new__(kind)) == code
    assert exit_code(InvalidValue("x")) == 2
