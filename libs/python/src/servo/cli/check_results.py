"""Check results of runs and assets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

import click

from . import show

if TYPE_CHECKING:
    from servo.client.sync import Client
    from servo.v1 import materialization_pb2, quality_pb2, run_pb2

_PRINTED_MAX = 10


def results(client: Client, **wanted: str) -> Iterator[materialization_pb2.CheckRecord]:
    """Check results, newest first; ``wanted`` filters by field, an empty value matches anything."""
    from servo.client.pages import pages
    from servo.v1 import scheduler_data_pb2

    request = scheduler_data_pb2.ListCheckResultsRequest(
        tenant=client.tenant,
        workspace=client.workspace,
        filter=" AND ".join(f'{field} = "{value}"' for field, value in wanted.items() if value),
        page_size=100,
    )
    return pages(client.scheduler.ListCheckResults, request)


def print_flags(client: Client, run: run_pb2.Run) -> None:
    """Prints why a run is flagged."""
    found = list(islice(results(client, run_id=run.run_id, passed="false"), _PRINTED_MAX + 1))
    for each in found[:_PRINTED_MAX]:
        partition = f"[{each.partition_key}]" if each.partition_key else ""
        click.secho(f"  ! {each.asset_key}{partition}  {describe(each.result)}", fg="yellow")
    if len(found) > _PRINTED_MAX:
        click.echo(f"  and more: `servo assets checks --run {run.run_id} --failed` names all")


def print_quarantined(client: Client, run: run_pb2.Run) -> None:
    """Prints the outputs of a run that are in quarantine."""
    of_run = f'run_id = "{run.run_id}" AND state = QUARANTINED'
    waiting = list(islice(client.materializations(filter=of_run), _PRINTED_MAX + 1))
    for each in waiting[:_PRINTED_MAX]:
        target = f"{each.output.asset_key}{f'[{each.output.partition_key}]' if each.output.partition_key else ''}"
        click.secho(f"  ! {target}  is in quarantine, and readers get the previous version:", fg="yellow")
        click.echo(f"      servo quarantine approve {each.materialization_id}    # or reject")
    if len(waiting) > _PRINTED_MAX:
        click.echo("  and more: `servo quarantine list` names all")


def describe(check: quality_pb2.CheckResult) -> str:
    """A failed check in one line."""
    first, *_ = check.message.removeprefix("the check broke: ").splitlines() or [""]
    return f"check {check.name} {ending(check)}{f': {first}' if first else ''}"


def ending(check: quality_pb2.CheckResult) -> str:
    if check.passed:
        return "passed"
    return "broke" if check.errored else "failed"


def row(record: materialization_pb2.CheckRecord) -> list[str]:
    from servo.v1 import quality_pb2

    check = record.result
    severity = quality_pb2.Severity.Name(check.severity).removeprefix("SEVERITY_").lower()
    target = f"{record.asset_key}{f'[{record.partition_key}]' if record.partition_key else ''}"
    first, *_ = check.message.splitlines() or [""]
    return [show.when(record.record_time), target, check.name, ending(check), severity, first]
