"""``servo run``"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import click

from . import partition_choice, show
from .commands import Argument, Option
from .server import Server, with_server
from .show import AsJson

if TYPE_CHECKING:
    from servo.client.sync import Client
    from servo.define.run import Run

Selection = Annotated[
    list[str],
    Argument(help="Assets: ns/a, +ns/a (with upstream), ns/a+ (with downstream), tag:x, 'ns.*', '*', -ns/a"),
]
Partitions = Annotated[list[str] | None, Option("--partition", "-p", help=partition_choice.HELP)]
Labels = Annotated[list[str] | None, Option("--label", help="key=value, to find the run by; may be repeated.")]
Config = Annotated[str, Option(help="Configuration for the functions, as a JSON object.")]
RunKey = Annotated[str, Option(help="Same key, same run: a repeat starts nothing new.")]
Priority = Annotated[int, Option(help="Added to the priority of every task; higher goes first.")]
SkipUpToDate = Annotated[bool, Option("--skip-up-to-date", help="Leave out what is up to date.")]
DryRun = Annotated[bool, Option("--dry-run", help="Only show what would run.")]
Comment = Annotated[str, Option(help="Why, for the record.")]
Wait = Annotated[bool, Option("--wait", "-w", help="Show progress until the run has ended; exit 1 if it failed.")]
Follow = Annotated[bool, Option("--follow", "-f", help="The same, with what its tasks write.")]
Timeout = Annotated[float | None, Option(min=0, help="Wait at most this many seconds, then exit 6; the run continues.")]


@with_server
def run_command(
    server: Server,
    selection: Selection,
    partition: Partitions = None,
    label: Labels = None,
    config: Config = "",
    run_key: RunKey = "",
    priority: Priority = 0,
    skip_up_to_date: SkipUpToDate = False,
    dry_run: DryRun = False,
    comment: Comment = "",
    wait: Wait = False,
    follow: Follow = False,
    timeout: Timeout = None,
    as_json: AsJson = False,
) -> None:
    """Start a run: plan assets and dispatch their tasks to workers."""
    from servo.define.run import Run

    wanted = Run(
        *selection,
        partitions=partition_choice.partition_choice(partition or []),
        labels=_labels(label or []),
        config=_config(config),
        priority=priority,
        skip_up_to_date=skip_up_to_date,
    )
    with server.client() as client:
        if dry_run:
            return _show_plan(client, wanted, as_json)
        run = client.trigger(wanted, run_key=run_key, comment=comment)
        if not (wait or follow):
            return show.print_message(run) if as_json else _accepted(run.run_id, run.tasks.total)
        if not as_json:
            _accepted(run.run_id, run.tasks.total)
        return follow_until_end(client, run.run_id, timeout=timeout, logs=follow, as_json=as_json)


def follow_until_end(client: Client, run_id: str, *, timeout: float | None, logs: bool, as_json: bool) -> None:
    """Follows a run to its end and exits accordingly."""
    from .follow import exit_for, follow, waiting

    with waiting(run_id, timeout):
        if as_json:
            run = client.wait(run_id, timeout=timeout)
            show.print_message(run)
        else:
            run = follow(client, run_id, timeout=timeout, logs=logs)
    exit_for(run)


def _accepted(run_id: str, tasks: int) -> None:
    click.echo(f"{run_id} has {show.counted(tasks, 'task')}; `servo runs watch {run_id}` shows it")


def _show_plan(client: Client, wanted: Run, as_json: bool) -> None:
    answer = client.plan(wanted)
    if as_json:
        return show.print_message(answer)
    left_out = f", {answer.up_to_date_count} are up to date" if answer.up_to_date_count else ""
    click.echo(f"{show.counted(answer.task_count, 'task')} would run{left_out}")
    for task in answer.plan.tasks:
        click.echo(f"  {show.task_name(task.task_key)}")
    more = answer.task_count - len(answer.plan.tasks)
    return click.echo(f"  and {more} more") if more > 0 else None


def _labels(given: list[str]) -> dict[str, str]:
    from servo.errors import InvalidValue

    for each in given:
        if "=" not in each:
            raise InvalidValue(f"--label `{each}` has no value: write key=value")
    return {name: value for name, _, value in (each.partition("=") for each in given)}


def _config(given: str) -> dict[str, Any]:
    import json

    from servo.errors import InvalidValue

    try:
        config = json.loads(given or "{}")
    except json.JSONDecodeError as error:
        raise InvalidValue(f"--config is not JSON: {error}") from None
    if not isinstance(config, dict):
        raise InvalidValue('--config is not a JSON object: write {"name": value}')
    return config
