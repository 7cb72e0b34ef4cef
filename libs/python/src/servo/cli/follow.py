"""Follows a run: prints each task when it ends, with rows, duration and checks, then a summary."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from . import check_results, show, skip_reasons
from .exit_codes import RUN_FAILED, STOPPED, OutOfTime
from .failures import print_failures
from .progress import Lines, progress_display

if TYPE_CHECKING:
    from servo.client.sync import Client
    from servo.v1 import common_pb2, quality_pb2, run_pb2, scheduler_runs_pb2

# Runs with more tasks print only failures line by line.
_PRINTED_MAX = 200
# The last log lines may arrive after the run has ended.
_FINAL_LOGS_SECONDS = 5.0
_ENDED = {"SUCCEEDED": ("✓", "green"), "FAILED": ("✗", "red"), "SKIPPED": ("-", "yellow"), "CANCELLED": ("-", "yellow")}
_ACTIVE = ("QUEUED", "DISPATCHED", "RUNNING")


def follow(client: Client, run_id: str, *, timeout: float | None = None, logs: bool = False) -> run_pb2.Run:
    """Prints the progress of a run until it ends."""
    view = _RunView(client, run_id, progress_display())
    with view.progress_display.open():
        log_printer = threading.Thread(target=view.print_logs, daemon=True)
        if logs:
            log_printer.start()
        try:
            for change in client.watch(run_id, timeout=timeout):
                view.print_change(change)
            if logs:
                log_printer.join(_FINAL_LOGS_SECONDS)
            view.finished = True
        except KeyboardInterrupt:
            view.finished = True
            view.progress_display.line(
                f"the run continues: `servo runs watch {run_id}` shows it, `servo runs cancel {run_id}` ends it"
            )
            raise click.exceptions.Exit(STOPPED) from None
    run = client.run(run_id)
    print_end(client, run)
    return run


@contextmanager
def waiting(run_id: str, timeout: float | None) -> Iterator[None]:
    """Explains a timeout: the command stops, the run continues."""
    from servo.client.errors import TimedOut

    try:
        yield
    except TimedOut as error:
        if timeout is None:
            raise
        raise OutOfTime(
            f"{run_id} has not ended within {timeout:g} s and continues; `servo runs watch {run_id}` shows it"
        ) from error


def follow_as_json(client: Client, run_id: str, *, timeout: float | None = None) -> run_pb2.Run:
    """Prints one line of JSON for each change."""
    for change in client.watch(run_id, timeout=timeout):
        show.print_message(change)
    return client.run(run_id)


def print_end(client: Client, run: run_pb2.Run) -> None:
    counts = run.tasks
    parts = [f"{number} {word}" for word, number in _parts(counts) if number]
    state = show.coloured(show.run_state(run))
    flagged = ", flagged by a check" if run.flagged else ""
    click.echo(f"{run.run_id} {state} after {show.took(run.create_time, run.end_time)}: {', '.join(parts)}{flagged}")
    if run.flagged:
        check_results.print_flags(client, run)
    check_results.print_quarantined(client, run)
    if counts.failed:
        print_failures(client, run)
    elif run.error:
        click.echo(f"  {run.error}")


def exit_for(run: run_pb2.Run) -> None:
    """Exits with 1 if the run did not succeed."""
    if show.run_state(run) != "SUCCEEDED":
        raise click.exceptions.Exit(RUN_FAILED)


def _parts(counts: common_pb2.TaskCounts) -> list[tuple[str, int]]:
    return [
        ("succeeded", counts.succeeded),
        ("failed", counts.failed),
        ("skipped", counts.skipped),
        ("cancelled", counts.cancelled),
    ]


class _RunView:
    def __init__(self, client: Client, run_id: str, on: Lines) -> None:
        self._client, self._run_id, self.progress_display = client, run_id, on
        self._tasks: dict[str, tuple[str, str, int]] = {}
        self._many = False
        # Set when the remaining logs are no longer awaited.
        self.finished = False

    def print_change(self, change: scheduler_runs_pb2.WatchRunResponse) -> None:
        if change.HasField("run") and change.run.tasks.total > _PRINTED_MAX and not self._many:
            self._many = True
            self.progress_display.line(f"  more than {_PRINTED_MAX} tasks: only failures are printed")
        for task in change.tasks:
            now = (show.task_name(task.task_key), show.task_state(task), task.attempt)
            before = self._tasks.get(task.task_id)
            self._tasks[task.task_id] = now
            if now != before:
                self._print_task(task, now[0], now[1])
        if change.HasField("run"):
            running = [name for name, state, _ in self._tasks.values() if state in _ACTIVE]
            self.progress_display.progress(change.run.tasks, running)

    def _print_task(self, task: run_pb2.Task, name: str, state: str) -> None:
        if state == "RETRY_WAIT":
            again = show.seconds(max(task.retry_time.ToNanoseconds() / 1e9 - time.time(), 0))
            self.progress_display.line(f"  ↻ {name}  {_error_text(task)}; tried again in {again}", "yellow")
        elif state in _ENDED and (state == "FAILED" or not self._many):
            mark, colour = _ENDED[state]
            self.progress_display.line(f"  {mark} {name}{self._details(task, state)}", colour)

    def _details(self, task: run_pb2.Task, state: str) -> str:
        if state == "FAILED":
            return f"  {_error_text(task)}"
        if state == "SKIPPED":
            return f"  {skip_reasons.reason_text(self._client, task)}"
        if state == "CANCELLED":
            return f"  {show.task_reason(task)}"
        if state != "SUCCEEDED" or not task.attempt:
            return ""
        attempts = self._client.task(self._run_id, task.task_id).attempts
        if not attempts:
            return ""
        last = attempts[-1]
        parts = [show.counted(each.row_count, "row") for each in last.outputs if each.HasField("row_count")]
        parts.append(show.took(task.start_time, task.end_time))
        parts += [f"at try {task.attempt}"] if task.attempt > 1 else []
        return "  ".join(["", *parts, *check_text(last.checks)])

    def print_logs(self) -> None:
        from servo.errors import ServoError

        try:
            for line in self._client.logs(self._run_id, follow=True):
                name = self._tasks.get(line.task_id, (line.task_id, "", 0))[0]
                self.progress_display.line(f"    {name} | {line.text}")
        # The run itself is followed by its changes, so failing logs are not a reason to stop.
        except (ServoError, ValueError) as error:
            if not self.finished:
                self.progress_display.line(f"    no logs: {error}", "yellow")


def _error_text(task: run_pb2.Task) -> str:
    kind = f"{task.error.type}: " if task.error.type else ""
    first, *_ = task.error.message.splitlines() or ["the attempt was lost"]
    return f"{kind}{first}"


def check_text(checks: Sequence[quality_pb2.CheckResult]) -> list[str]:
    """Counts the checks that passed and names those that failed."""
    passed = [each.name for each in checks if each.passed]
    parts = [f"check {passed[0]} passed" if len(passed) == 1 else f"{len(passed)} checks passed"] if passed else []
    return [*parts, *(check_results.describe(each) for each in checks if not each.passed)]
