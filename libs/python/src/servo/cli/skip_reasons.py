"""The reasons that user code gave for skipping tasks."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import click

from . import show

if TYPE_CHECKING:
    from servo.client.sync import Client
    from servo.v1 import run_pb2

_PRINTED_MAX = 10


def print_skips(client: Client, run: run_pb2.Run) -> None:
    if not run.tasks.skipped:
        return
    skipped = list(islice(client.tasks(run.run_id, filter="reason = SKIPPED_BY_USER_CODE"), _PRINTED_MAX + 1))
    for task in skipped[:_PRINTED_MAX]:
        click.secho(f"- {show.task_name(task.task_key)}  {reason_text(client, task)}", fg="yellow")
    if len(skipped) > _PRINTED_MAX:
        click.echo(f"and more: `servo runs logs {run.run_id} --task TASK` shows the reason of each")


def reason_text(client: Client, task: run_pb2.Task) -> str:
    """Why a task was skipped, in one line. The reason is stored with the attempt that skipped."""
    from servo.v1 import state_pb2

    reason = show.task_reason(task)
    if task.reason != state_pb2.TRANSITION_REASON_SKIPPED_BY_USER_CODE:
        return reason
    attempts = client.task(task.run_id, task.task_id).attempts
    explanation = next((each.skip_reason for each in attempts if each.attempt_id == task.attempt_id), "")
    first, *_ = explanation.splitlines() or [""]
    return f"{reason}: {first}" if first else reason
