"""All commands, and how they end.

The list of commands is written without typer, which alone takes longer to import than an answer may take; everything
else is typer's, with only the command that was asked for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

_COMPLETING = "_SERVO_COMPLETE"
_PURPOSE = "Build, deploy and watch data assets."
# Each is the function `<name>_command` in the module of its name.
COMMANDS = {
    "build": "Check a project and package it: manifest, sources and locked requirements, each under its digest.",
    "deploy": "Build a project, show what would change, and make it the workspace's current deployment.",
    "worker": "Take tasks and run them, until SIGTERM or Ctrl-C.",
}
_OPTIONS = {
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell, to copy it or customize the installation.",
    "--help": "Show this message and exit.",
}
_EXIT_CODES = (
    "0 fine, 1 the run failed, 2 wrong use or a wrong project, 3 not found, 4 not authenticated or not allowed, "
    "5 conflict, 6 out of time, 7 no server"
)


def main() -> None:
    arguments = sys.argv[1:]
    # A shell that completes a line calls without arguments, too.
    if arguments in ([], ["--help"]) and _COMPLETING not in os.environ:
        print(overview(), end="")
        raise SystemExit(0 if arguments else 2)
    from servo.errors import ServoError

    named = arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS
    try:
        app(named)()
    except ServoError as error:
        print(f"servo: {error}", file=sys.stderr)
        raise SystemExit(exit_code(error)) from None


def overview() -> str:
    import shutil
    import textwrap

    width = min(shutil.get_terminal_size().columns, 100)

    def lines(entries: dict[str, str]) -> str:
        column = max(map(len, entries)) + 4
        return "".join(
            textwrap.fill(text, width, initial_indent=f"  {name}".ljust(column), subsequent_indent=" " * column) + "\n"
            for name, text in entries.items()
        )

    return (
        f"Usage: servo [OPTIONS] COMMAND [ARGS]...\n\n{_PURPOSE}\n\nOptions:\n{lines(_OPTIONS)}\n"
        f"Commands:\n{lines(COMMANDS)}\n{textwrap.fill(f'Exit codes: {_EXIT_CODES}.', width)}\n"
    )


def app(names: Iterable[str]) -> typer.Typer:
    """With these commands only."""
    import importlib

    import typer

    made = typer.Typer(name="servo", help=_PURPOSE, no_args_is_help=True, add_completion=True)
    # Keeps the commands' names, however few there are.
    made.callback()(lambda: None)
    for name in names:
        function = getattr(importlib.import_module(f"servo.cli.{name}"), f"{name}_command")
        made.command(name, help=COMMANDS[name])(function)
    return made


def exit_code(error: Exception) -> int:
    from servo.client import errors

    codes: list[tuple[type[Exception] | tuple[type[Exception], ...], int]] = [
        (errors.NotFound, 3),
        ((errors.NotAuthenticated, errors.NotAllowed), 4),
        (errors.Conflict, 5),
        (errors.TimedOut, 6),
        ((errors.Unavailable, errors.Exhausted), 7),
    ]
    return next((code for kinds, code in codes if isinstance(error, kinds)), 2)
