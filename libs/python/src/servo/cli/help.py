"""Help of every command, written down ahead: typer alone takes longer to import than help may take to come.

``python -m servo.cli.help`` writes the file anew; a test says when it must be.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

FILE = Path(__file__).with_name("help.json")
_COLUMNS = 80


def help_of(words: Sequence[str]) -> str | None:
    """The help of a command, ``runs list`` for instance; none where it is not known."""
    if not FILE.exists():
        return None
    text: str | None = json.loads(FILE.read_text()).get(" ".join(words))
    return text


def written() -> dict[str, str]:
    """What typer says, of every command and every group."""
    from .main import COMMANDS, app

    texts: dict[str, str] = {}
    for name in COMMANDS:
        texts[name] = _asked([name, "--help"], [name])
        for inner in _inner(app([name]), name):
            texts[f"{name} {inner}"] = _asked([name, inner, "--help"], [name])
    return texts


def _inner(made: object, name: str) -> list[str]:
    import typer

    group = typer.main.get_command(made).commands[name]  # type: ignore[arg-type, attr-defined]
    return list(getattr(group, "commands", {}))


def _asked(arguments: list[str], names: list[str]) -> str:
    from typer.testing import CliRunner

    from .main import app

    # The environment must not show through: what it sets is shown as a default.
    runner = CliRunner(env={"COLUMNS": str(_COLUMNS), "TERMINAL_WIDTH": str(_COLUMNS)})
    return runner.invoke(app(names), arguments, prog_name="servo").output


if __name__ == "__main__":
    FILE.write_text(json.dumps(written(), indent=1, ensure_ascii=False) + "\n")
