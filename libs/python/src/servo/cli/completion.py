"""Shell completion: ``servo --show-completion`` and ``servo --install-completion``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from servo.errors import InvalidValue

if TYPE_CHECKING:
    import click

VARIABLE = "_SERVO_COMPLETE"
# For each shell: the file that the script goes to, and the start-up file that must read it, below the home folder.
_FILES = {
    "bash": (".bash_completions/servo.sh", ".bashrc"),
    "zsh": (".zfunc/servo.zsh", ".zshrc"),
    "fish": (".config/fish/completions/servo.fish", None),
}


def script(group: click.Group) -> str:
    from click.shell_completion import get_completion_class

    made = get_completion_class(_shell())
    if made is None:
        raise InvalidValue(f"click has no completion for {_shell()}")
    return made(group, {}, "servo", VARIABLE).source()


def install(group: click.Group) -> Path:
    """Writes the script and lets the shell read it when it starts; returns the script's path."""
    name, start_up = _FILES[_shell()]
    path = Path.home() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script(group))
    if start_up is not None:
        _append_once(Path.home() / start_up, f"source '{path}'")
    return path


def _append_once(file: Path, line: str) -> None:
    before = file.read_text() if file.exists() else ""
    if line not in before.splitlines():
        file.write_text(f"{before.rstrip()}\n{line}\n".lstrip())


def _shell() -> str:
    name = Path(os.environ.get("SHELL", "")).name
    if name not in _FILES:
        raise InvalidValue(f"no completion for the shell {name or '(SHELL is not set)'}; use {', '.join(_FILES)}")
    return name
