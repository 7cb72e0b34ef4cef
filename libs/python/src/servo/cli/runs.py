"""``servo runs``"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated

import click

from . import show
from .commands import Argument, Group, Option
from .exit_codes import NothingFound
from .run import Comment, Follow, Timeout, Wait, follow_until_end
from .server import Server, with_server
from .show import AsJson

if TYPE_CHECKING:
    from servo.client.sync import Client, LogLevel
    from servo.v1 import callback_pb2, run_pb2, scheduler_runs_pb2

LAST = "last"
RunId = Annotated[str, Argument(help="The run's id, or `last` for the newest run.")]
Filter = Annotated[str, Option(help="Such as 'state = FAILED', over state, run_key, labels, trigger and times.")]
Limit = Annotated[int, Option("--limit", "-n", min=1, help="At most this many.")]
TaskName = Annotated[str, Option("--task", help="A task's key, such as 'ns/asset[day=d:2026-01-31]', or its id.")]
OnlyFailed = Annotated[bool, Option("--failed", help="Only tasks that failed.")]
FollowLogs = Annotated[bool, Option("--follow", "-f", help="Go on as lines come, until the run has ended.")]
LastLines = Annotated[int, Option("--lines", "-n", min=0, help="Only this many from the end; 0 for all.")]
Level = Annotated[str, Option(help="Only lines at least this important: debug, info, warning or error.")]
SameCode = Annotated[bool, Option("--same-code", help="With the code that the run had, not what is deployed now.")]

runs_app = Group()


@runs_app.add("list")
@with_server
def list_command(server: Server, filter: Filter = "", limit: Limit = 20, as_json: AsJson = False) -> None:  # noqa: A002
    """List the runs of the workspace, newest first."""
    with server.client() as client:
        runs = list(islice(client.runs(filter=filter), limit))
    if as_json:
        return show.print_list(runs)
    if not runs:
        return click.echo("no runs; `servo run ASSET` starts one")
    return show.print_table(["RUN", "STATE", "TASKS", "CREATED", "TOOK", "WHAT"], [_row(run) for run in runs], states=1)


@runs_app.add("show")
@with_server
def show_command(
    server: Server, run_id: RunId = LAST, failed: OnlyFailed = False, limit: Limit = 200, as_json: AsJson = False
) -> None:
    """Show a run and its tasks, with file, line and hint of every failure."""
    from .follow import print_end
    from .skip_reasons import print_skips

    with server.client() as client:
        run = client.run(resolve_run_id(client, run_id))
        listed = client.tasks(run.run_id, filter="state = FAILED" if failed else "")
        tasks = list(listed if as_json else islice(listed, limit))
        if as_json:
            return show.print_json({"run": show.as_dict(run), "tasks": [show.as_dict(task) for task in tasks]})
        _show_head(run)
        show.print_table(["TASK", "STATE", "TRIES", "TOOK"], [_task_row(task) for task in tasks], states=1)
        more = (run.tasks.failed if failed else run.tasks.total) - len(tasks)
        click.echo(f"and {more} more; --limit shows them\n" if more > 0 else "")
        print_skips(client, run)
        return print_end(client, run)


@runs_app.add("watch")
@with_server
def watch_command(
    server: Server,
    run_id: RunId = LAST,
    follow: Follow = False,
    timeout: Timeout = None,
    as_json: AsJson = False,
) -> None:
    """Follow a run until it ends; exit 1 if it did not succeed."""
    from .follow import exit_for, follow_as_json, waiting

    with server.client() as client:
        run_id = resolve_run_id(client, run_id)
        if as_json:
            with waiting(run_id, timeout):
                run = follow_as_json(client, run_id, timeout=timeout)
            return exit_for(run)
        return follow_until_end(client, run_id, timeout=timeout, logs=follow, as_json=False)


@runs_app.add("cancel")
@with_server
def cancel_command(
    server: Server, run_id: RunId, comment: Comment = "", wait: Wait = False, as_json: AsJson = False
) -> None:
    """Cancel a run: waiting tasks at once, running ones after a grace period."""
    with server.client() as client:
        run = client.cancel(resolve_run_id(client, run_id), comment=comment)
        run = client.wait(run.run_id) if wait else run
    if as_json:
        return show.print_message(run)
    return click.echo(f"{run.run_id} {show.coloured(show.run_state(run))}")


@runs_app.add("retry")
@with_server
def retry_command(
    server: Server,
    run_id: RunId = LAST,
    same_code: SameCode = False,
    comment: Comment = "",
    wait: Wait = False,
    follow: Follow = False,
    timeout: Timeout = None,
    as_json: AsJson = False,
) -> None:
    """Start a new run of the tasks that did not succeed, with the current deployment; successful tasks are reused."""
    with server.client() as client:
        old = resolve_run_id(client, run_id)
        run = client.retry(old, current_code=not same_code, comment=comment)
        if not (wait or follow):
            return show.print_message(run) if as_json else _retried_run(run, old)
        if not as_json:
            _retried_run(run, old)
        return follow_until_end(client, run.run_id, timeout=timeout, logs=follow, as_json=as_json)


@runs_app.add("explain")
@with_server
def explain_command(server: Server, run_id: RunId = LAST, task: TaskName = "", as_json: AsJson = False) -> None:
    """Explain why a run or its tasks are not running: what they wait for, and which limits hold them."""
    with server.client() as client:
        run_id = resolve_run_id(client, run_id)
        explanations = list(client.explain(run_id, task_of(client, run_id, task) if task else ""))
    if as_json:
        return show.print_list(explanations)
    for each in explanations:
        _show_explanation(each)
    return None


@runs_app.add("logs")
@with_server
def logs_command(
    server: Server,
    run_id: RunId = LAST,
    task: TaskName = "",
    follow: FollowLogs = False,
    lines: LastLines = 0,
    level: Level = "",
    as_json: AsJson = False,
) -> None:
    """Print the logs of a run's tasks."""
    with server.client() as client:
        run_id = resolve_run_id(client, run_id)
        task_id = task_of(client, run_id, task) if task else ""
        names = {each.task_id: show.task_name(each.task_key) for each in client.tasks(run_id)}
        for line in client.logs(run_id, task_id=task_id, follow=follow, last_lines=lines, min_level=_level(level)):
            if as_json:
                show.print_message(line)
            else:
                _show_line(line, "" if task else names.get(line.task_id, line.task_id))


def resolve_run_id(client: Client, given: str) -> str:
    if given != LAST:
        return given
    newest = next(client.runs(), None)
    if newest is None:
        raise NothingFound("there is no run in this workspace yet: `servo run ASSET` starts one")
    return newest.run_id


def task_of(client: Client, run_id: str, given: str) -> str:
    """Finds a task by id, by key, or by the key of an asset that has one task in the run."""
    from servo.model.suggestions import did_you_mean

    tasks = list(client.tasks(run_id))
    fitting = [task for task in tasks if given in (task.task_id, task.task_key, show.task_name(task.task_key))]
    fitting = fitting or [task for task in tasks if task.asset_key == given]
    if len(fitting) > 1:
        keys = ", ".join(show.task_name(task.task_key) for task in fitting[:5])
        raise NothingFound(f"`{given}` has {len(fitting)} tasks in {run_id}: name one of them, such as {keys}")
    if not fitting:
        near = did_you_mean(given, [show.task_name(task.task_key) for task in tasks])
        raise NothingFound(f"{run_id} has no task `{given}`{near}; `servo runs show {run_id}` lists all")
    return fitting[0].task_id


def _level(given: str) -> LogLevel | None:
    from typing import get_args

    from servo.client.sync import LogLevel
    from servo.errors import InvalidValue

    for level in get_args(LogLevel):
        if given == level:
            return given  # type: ignore[return-value]
    if given:
        raise InvalidValue(f"--level `{given}` is unknown: write debug, info, warning or error")
    return None


def _row(run: run_pb2.Run) -> list[str]:
    what = " ".join(run.spec.selection)
    return [
        run.run_id,
        show.run_state(run),
        f"{run.tasks.succeeded}/{run.tasks.total}",
        show.when(run.create_time),
        show.took(run.create_time, run.end_time),
        what if len(what) <= 40 else f"{what[:39]}…",
    ]


def _task_row(task: run_pb2.Task) -> list[str]:
    took = show.took(task.start_time, task.end_time)
    return [show.task_name(task.task_key), show.task_state(task), str(task.attempt), took]


def _show_head(run: run_pb2.Run) -> None:
    click.echo(f"run         {run.run_id}{f' (a retry of {run.retry_of})' if run.retry_of else ''}")
    click.echo(f"what        {' '.join(run.spec.selection)}")
    click.echo(f"by          {run.requested_by.principal}  {run.requested_by.comment}".rstrip())
    click.echo(f"created     {show.when(run.create_time)}")
    click.echo(f"deployment  {run.deployment_id}\n")


def _show_explanation(each: scheduler_runs_pb2.Explanation) -> None:
    click.echo(f"{show.task_name(each.task_key) or 'the run'}: {each.message}")
    for blocker in each.blockers:
        click.echo(f"    {blocker.kind} {blocker.id}  {blocker.detail}".rstrip())


def _show_line(line: callback_pb2.LogLine, name: str) -> None:
    click.echo(f"{show.when(line.time)} {f'{name} | ' if name else ''}{line.text}")


def _retried_run(run: run_pb2.Run, old: str) -> None:
    click.echo(f"{run.run_id} repeats {show.counted(run.tasks.total, 'task')} of {old}")
