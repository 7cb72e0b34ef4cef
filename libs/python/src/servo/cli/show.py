"""Output of commands: JSON for programs, aligned tables for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import click

from .commands import Option

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from google.protobuf.timestamp_pb2 import Timestamp

    from servo.v1 import planner_pb2, run_pb2

AsJson = Annotated[bool, Option("--json", help="Print the result as JSON.")]

_COLOURS = {
    "SUCCEEDED": "green",
    "FAILED": "red",
    "TIMED_OUT": "red",
    "RETRY_WAIT": "yellow",
    "SKIPPED": "yellow",
    "CANCELLED": "yellow",
    "RUNNING": "cyan",
}


def as_dict(message: Message) -> Any:
    from google.protobuf.json_format import MessageToDict

    return MessageToDict(message, preserving_proto_field_name=True)


def print_json(value: Any) -> None:
    # NaN and Infinity are not valid JSON.
    click.echo(json.dumps(value, allow_nan=False))


def print_message(message: Message) -> None:
    print_json(as_dict(message))


def print_list(messages: Iterable[Message]) -> None:
    print_json([as_dict(each) for each in messages])


def print_warnings(warnings: Iterable[planner_pb2.ManifestFault], *, err: bool = False) -> None:
    """Prints the definitions of a manifest that have no effect yet; yellow on a terminal."""
    for each in warnings:
        click.secho(f"  ! {each.field}  {each.description}", fg="yellow", err=err)


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, states: int | None = None) -> None:
    """Prints aligned columns; the column ``states`` is coloured on a terminal."""
    lines = [header, *rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(header))]
    for number, line in enumerate(lines):
        cells = [text.ljust(width) for text, width in zip(line, [*widths[:-1], 0], strict=True)]
        if number == 0:
            cells = [click.style(cell, bold=True) for cell in cells]
        elif states is not None:
            cells[states] = click.style(cells[states], fg=_COLOURS.get(line[states]))
        click.echo("  ".join(cells))


def coloured(state: str) -> str:
    return click.style(state, fg=_COLOURS.get(state))


def run_state(run: run_pb2.Run) -> str:
    from servo.v1 import state_pb2

    return state_pb2.RunState.Name(run.state).removeprefix("RUN_STATE_")


def task_state(task: run_pb2.Task) -> str:
    from servo.v1 import state_pb2

    return state_pb2.TaskState.Name(task.state).removeprefix("TASK_STATE_")


def task_reason(task: run_pb2.Task) -> str:
    from servo.v1 import state_pb2

    return state_pb2.TransitionReason.Name(task.reason).removeprefix("TRANSITION_REASON_").lower().replace("_", " ")


def task_name(key: str) -> str:
    """The task key without the operation, if that is the usual one."""
    return key.removesuffix(":materialize")


def when(time: Timestamp) -> str:
    """The time in the local zone, to the second."""
    if not time.seconds:
        return "-"
    return datetime.fromtimestamp(time.seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def took(start: Timestamp, end: Timestamp) -> str:
    if not (start.seconds and end.seconds):
        return "-"
    return seconds((end.ToNanoseconds() - start.ToNanoseconds()) / 1e9)


def seconds(number: float) -> str:
    return f"{number:.1f} s" if number < 60 else f"{int(number // 60)} min {int(number % 60)} s"


def counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
