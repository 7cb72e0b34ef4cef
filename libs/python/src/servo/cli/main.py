"""All commands, and how they end.

Exit codes: 0 fine, 1 the run failed, 2 wrong use or a wrong project, 3 not found, 4 not authenticated or not allowed,
5 conflict, 6 out of time, 7 no server.
"""

from __future__ import annotations

import sys

import typer

from . import build, deploy, worker

app = typer.Typer(name="servo", help="Build, deploy and watch data assets.", no_args_is_help=True, add_completion=True)
app.command("build")(build.build_command)
app.command("deploy")(deploy.deploy_command)
app.command("worker")(worker.worker_command)


@app.callback()
def servo() -> None:
    """Keeps the commands' names, however many there are."""


def main() -> None:
    from servo.errors import ServoError

    try:
        app()
    except ServoError as error:
        print(f"servo: {error}", file=sys.stderr)
        raise SystemExit(exit_code(error)) from None


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
