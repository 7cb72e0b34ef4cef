"""Prints failed tasks: the error, its location in the user's code, and a hint."""

from __future__ import annotations

import re
import textwrap
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import show

if TYPE_CHECKING:
    from servo.client.sync import Client
    from servo.v1 import common_pb2, run_pb2

_PRINTED_MAX = 10
_CAME_FROM = re.compile(
    r"^(?:The above exception was the direct cause|During handling of the above exception).*$", re.MULTILINE
)
_FRAME = re.compile(r'File "([^"]+)", line ([0-9]+)')


def print_failures(client: Client, run: run_pb2.Run) -> None:
    failed = list(islice(client.tasks(run.run_id, filter="state = FAILED"), _PRINTED_MAX))
    for task in failed:
        print_failure(run.run_id, task)
    if run.tasks.failed > len(failed):
        click.echo(f"\nand {run.tasks.failed - len(failed)} more: `servo runs show {run.run_id} --failed` names all")


def print_failure(run_id: str, task: run_pb2.Task) -> None:
    error = task.error
    message = error.message.strip() or show.task_state(task)
    click.secho(f"\n✗ {show.task_name(task.task_key)}", fg="red", bold=True)
    click.echo(textwrap.indent(f"{error.type}: {message}" if error.type else message, "    "))
    where, caller = place(error.location, error.traceback), called_at(error.traceback)
    if where:
        click.echo(f"    at {where}{f', called at {caller}' if caller and caller != where else ''}")
    click.echo(f"    hint: {_check_hint(run_id) if _is_check(task) else hint(error, run_id)}")
    click.echo(f"    log: servo runs logs {run_id} --task '{show.task_name(task.task_key)}'")


def _is_check(task: run_pb2.Task) -> bool:
    from servo.v1 import state_pb2

    return task.reason == state_pb2.TRANSITION_REASON_CHECK_FAILED


def _check_hint(run_id: str) -> str:
    return (
        "the data is not as the check wants it: correct the function or the check, deploy, then "
        f"`servo runs retry {run_id}`"
    )


def place(location: str, traceback: str) -> str:
    """The innermost line in the user's own files. A worker runs a copy of them and reports paths of the copy."""
    frames = [f"{file}:{line}" for file, line in _FRAME.findall(traceback)]
    return next((found for each in (location, *reversed(frames)) if (found := _own(each))), location)


def called_at(traceback: str) -> str:
    """The outermost line in the user's own files: the asset's function, when one of its helpers
    failed. Tracebacks of causes come first in the text and are ignored.
    """
    frames = (f"{file}:{line}" for file, line in _FRAME.findall(_CAME_FROM.split(traceback)[-1]))
    return next((found for each in frames if (found := _own(each))), "")


def _own(location: str) -> str | None:
    """The path within the project, or within its source folder: the end of the copy's path."""
    path, _, line = location.rpartition(":")
    parts = [part for part in Path(path).parts if part != "/"]
    # Copies are kept in hidden folders.
    start = max((at + 1 for at, part in enumerate(parts) if part.startswith(".")), default=0)
    for rest in (Path(*parts[at:]) for at in range(start, len(parts))):
        for file in (Path("src") / rest, rest):
            if file.is_file():
                return f"{file}:{line}"
    return None


def hint(error: common_pb2.TaskError, run_id: str) -> str:
    """The worker's hint, or one derived from the error category."""
    from servo.v1 import state_pb2

    if error.hint:
        return error.hint
    again = f"`servo runs retry {run_id}`"
    match error.category:
        case state_pb2.ERROR_CATEGORY_INPUT:
            return f"what it reads is not there: run its upstream with `servo run +ASSET`, then {again}"
        case state_pb2.ERROR_CATEGORY_CONFIGURATION:
            return f"correct the settings that the message names, deploy, then {again}"
        case state_pb2.ERROR_CATEGORY_TIMEOUT:
            return f"give it more time with @asset(timeout=…) or less to do, deploy, then {again}"
        case state_pb2.ERROR_CATEGORY_TRANSIENT | state_pb2.ERROR_CATEGORY_INFRASTRUCTURE:
            return f"this passes mostly: {again} now, or give the asset more attempts with @asset(retry=…)"
        case _:
            return f"correct the function, deploy (`servo dev` does it when you save), then {again}"
