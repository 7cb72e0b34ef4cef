"""Precomputed help of every command, because importing all commands takes longer than printing help may take.

``python -m servo.cli.help`` rewrites the file; a test fails when it is out of date.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

FILE = Path(__file__).with_name("help.json")
_COLUMNS = 80


def help_of(words: Sequence[str]) -> str | None:
    """The help of a command such as ``runs list``, or None if the file does not have it."""
    if not FILE.exists():
        return None
    text: str | None = json.loads(FILE.read_text()).get(" ".join(words))
    return text


def written() -> dict[str, str]:
    """The help of every command and every group, as click formats it."""
    from .main import COMMANDS, app

    texts: dict[str, str] = {}
    for name in COMMANDS:
        texts[name] = _help([name])
        group = app([name]).commands[name]
        for inner in getattr(group, "commands", {}):
            texts[f"{name} {inner}"] = _help([name, inner])
    return texts


def _help(words: list[str]) -> str:
    from click.testing import CliRunner

    from .main import app

    invoked = CliRunner().invoke(
        app(words[:1]), [*words, "--help"], prog_name="servo", terminal_width=_COLUMNS, max_content_width=_COLUMNS
    )
    return invoked.output


if __name__ == "__main__":
    FILE.write_text(json.dumps(written(), indent=1, ensure_ascii=False) + "\n")
