"""The entry point of ``servo``: all commands, and their exit codes.

The list of commands and their help are printed without importing click or any command, because shells and people wait
for them. Everything else goes through click, and only the module of the requested command is imported.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .commands import Group

_COMPLETION = "_SERVO_COMPLETE"
_DEBUG = "SERVO_DEBUG"
_PURPOSE = "Build, deploy and watch data assets."
# Each is the function `<name>_command`, or for groups the variable `<name>_app`, in the module of
# the same name.
COMMANDS = {
    "init": "Create a project: a small shop whose orders become daily revenue.",
    "dev": "Run server and worker on this machine, and deploy whenever you save.",
    "build": "Check and package a project: manifest, sources and locked requirements, named by digest.",
    "deploy": "Build a project, show what would change, and make it the workspace's current deployment.",
    "run": "Start a run: plan assets and dispatch their tasks to workers.",
    "runs": "Inspect runs: list, show, watch, cancel, retry, explain, logs.",
    "assets": "Inspect deployed assets: list, show, lineage, checks, preview.",
    "partitions": "Inspect partitions and their states; add and remove values of dynamic sets.",
    "quarantine": "Decide about outputs that failed a critical check: list, approve, reject.",
    "quota": "Limits, pools, usage, costs and budgets of the tenant.",
    "admin": "Operate: workers, pauses, deployments.",
    "worker": "Take tasks and run them, until SIGTERM or Ctrl-C.",
    "demo": "Start a server, deploy and run the example project, print its table, stop.",
    "doctor": "Check that everything Servo needs is available, and say how to fix the rest.",
}
_OPTIONS = {
    "--version": "Show the version and exit.",
    "--install-completion": "Install completion for the current shell.",
    "--show-completion": "Show completion for the current shell, to copy it or customize the installation.",
    "--help": "Show this message and exit.",
}
_EXIT_CODES = (
    "0 success, 1 the run failed, 2 wrong usage or an invalid project, 3 not found, 4 not authenticated or not "
    "allowed, 5 conflict, 6 timeout, 7 server unreachable, 70 a bug in servo, 130 stopped by Ctrl-C or by declining "
    "a confirmation"
)


def main() -> None:
    arguments = sys.argv[1:]
    # gRPC logs to stderr, which only helps when debugging it.
    if _DEBUG not in os.environ:
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    raise SystemExit(_run(arguments))


def _run(arguments: list[str]) -> int | None:
    """The exit code, or None for 0."""
    from servo.errors import InvalidValue, ServoError

    from . import exit_codes

    as_json = "--json" in arguments
    try:
        return _dispatch(arguments)
    except ServoError as error:
        return exit_codes.report(error, as_json=as_json)
    except Exception as error:
        if _DEBUG in os.environ:
            raise
        # The caller named this file or a folder above it.
        if isinstance(error, OSError) and error.filename:
            return exit_codes.report(
                InvalidValue(f"{error.filename} cannot be used: {error.strerror}"), as_json=as_json
            )
        text = f"servo: {type(error).__name__}: {error}\n  this is a bug in servo; {_DEBUG}=1 shows where"
        print(text, file=sys.stderr)
        return exit_codes.OWN_FAULT


def _dispatch(arguments: list[str]) -> int | None:
    # A shell that completes a line calls without arguments, too.
    text = None if _COMPLETION in os.environ else _static_text(arguments)
    if text is not None:
        print(text, end="")
        return 0 if arguments else 2
    names = arguments[:1] if arguments and arguments[0] in COMMANDS else COMMANDS
    app(names)(complete_var=_COMPLETION)
    return None


def _static_text(arguments: list[str]) -> str | None:
    """The output of the options that need no command."""
    if arguments in ([], ["--help"]):
        return overview()
    if arguments == ["--version"]:
        from servo import __version__

        return f"servo {__version__}\n"
    if arguments in (["--show-completion"], ["--install-completion"]):
        return _completion(arguments[0])
    if arguments[-1] == "--help" and not any(each.startswith("-") for each in arguments[:-1]):
        from .help import help_of

        return help_of(arguments[:-1])
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


def app(names: Iterable[str]) -> Group:
    """The command line with these commands only."""
    import importlib

    from .commands import Group, command

    made = Group("servo", help=_PURPOSE)
    for name in names:
        module = importlib.import_module(f"servo.cli.{name}")
        group: Group | None = getattr(module, f"{name}_app", None)
        if group is not None:
            group.help = COMMANDS[name]
            made.add_command(group, name)
        else:
            made.add_command(command(name, getattr(module, f"{name}_command"), COMMANDS[name]))
    return made


def _completion(option: str) -> str:
    from . import completion

    group = app(COMMANDS)
    if option == "--show-completion":
        return f"{completion.script(group)}\n"
    return f"completion is installed in {completion.install(group)}; start a new shell to use it\n"
