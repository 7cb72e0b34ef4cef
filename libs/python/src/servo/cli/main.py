"""All commands, and how they end.

The list of commands and their help are shown without typer, which alone takes longer to import than an answer may take;
everything else is typer's, with only the command that was asked for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

_COMPLETING = "_SERVO_COMPLETE"
_DEBUG = "SERVO_DEBUG"
_PURPOSE = "Build, deploy and watch data assets."
# Each is the function `<name>_command`, or for a group of commands `<name>_app`, in the module of its name.
COMMANDS = {
    "init": "Make a new project: a small shop whose orders become daily revenue.",
    "dev": "Run everything on this machine: server, worker, and a new deployment whenever you save.",
    "build": "Check a project and package it: manifest, sources and locked requirements, each under its digest.",
    "deploy": "Build a project, show what would change, and make it the workspace's current deployment.",
    "run": "Run assets: plan them, and hand their tasks to the workers.",
    "runs": "Look at runs: list, show, watch, cancel, retry, explain, logs.",
    "assets": "Look at what is deployed: list, show, lineage, checks, preview.",
    "partitions": "Look at partitions and their states; add and remove values of dynamic sets.",
    "quarantine": "Decide about data that failed a critical check: list, approve, reject.",
    "quota": "Limits, pools, usage, costs and budgets of the tenant.",
    "admin": "Operate: workers, pauses, deployments.",
    "worker": "Take tasks and run them, until SIGTERM or Ctrl-C.",
    "demo": "Show it all: start a server, deploy and run the example project, print its table, stop.",
    "doctor": "Look whether everything is there that Servo needs, and say what to do about the rest.",
}
_OPTIONS = {
    "--version": "Show the version and exit.",
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell, to copy it or customize the installation.",
    "--help": "Show this message and exit.",
}
_EXIT_CODES = (
    "0 fine, 1 the run failed, 2 wrong use or a wrong project, 3 not found, 4 not authenticated or not allowed, "
    "5 conflict, 6 out of time, 7 no server, 70 a fault of servo itself, 130 stopped by Ctrl-C or by no to a question"
)


def main() -> None:
    arguments = sys.argv[1:]
    # A shell that completes a line calls without arguments, too.
    text = None if _COMPLETING in os.environ else _said_at_once(arguments)
    if text is not None:
        print(text, end="")
        raise SystemExit(0 if arguments else 2)
    # gRPC's own words on stderr are for those who look for a fault of it.
    if _DEBUG not in os.environ:
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    named = arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS
    raise SystemExit(_carried_out(named, as_json="--json" in arguments))


def _said_at_once(arguments: list[str]) -> str | None:
    """What needs nothing but words."""
    if arguments in ([], ["--help"]):
        return overview()
    if arguments == ["--version"]:
        from servo import __version__

        return f"servo {__version__}\n"
    if arguments[-1] == "--help" and not any(each.startswith("-") for each in arguments[:-1]):
        from .help import help_of

        return help_of(arguments[:-1])
    return None


def _carried_out(names: Iterable[str], *, as_json: bool) -> int | None:
    from servo.errors import InvalidValue, ServoError

    from . import ends

    try:
        app(names)()
    except ServoError as error:
        return ends.tell(error, as_json=as_json)
    except Exception as error:
        if _DEBUG in os.environ:
            raise
        # A file that the caller named, or that lies where the caller said.
        if isinstance(error, OSError) and error.filename:
            return ends.tell(InvalidValue(f"{error.filename} cannot be used: {error.strerror}"), as_json=as_json)
        words = f"servo: {type(error).__name__}: {error}\n  this is a fault of servo itself; {_DEBUG}=1 shows where"
        print(words, file=sys.stderr)
        return ends.OWN_FAULT
    return None


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

    # Plain help: drawing boxes takes longer than everything else.
    made = typer.Typer(name="servo", help=_PURPOSE, no_args_is_help=True, rich_markup_mode=None)
    # Keeps the commands' names, however few there are.
    made.callback()(lambda: None)
    for name in names:
        module = importlib.import_module(f"servo.cli.{name}")
        group = getattr(module, f"{name}_app", None)
        if group is not None:
            made.add_typer(group, name=name, help=COMMANDS[name])
        else:
            made.command(name, help=COMMANDS[name])(getattr(module, f"{name}_command"))
    return made
