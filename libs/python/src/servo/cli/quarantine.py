"""``servo quarantine``"""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import click

from . import show
from .commands import Argument, Group
from .run import Comment
from .runs import Limit
from .server import Server, with_server
from .show import AsJson

Version = Annotated[str, Argument(help="The version's id, as `servo quarantine list` shows it.")]

quarantine_app = Group()


@quarantine_app.add("list")
@with_server
def list_command(server: Server, limit: Limit = 100, as_json: AsJson = False) -> None:
    """List versions that are in quarantine because a critical check failed."""
    with server.client() as client:
        found = list(islice(client.materializations(filter="state = QUARANTINED"), limit))
    if as_json:
        return show.print_list(found)
    if not found:
        return click.echo("nothing is in quarantine")
    rows = [
        [
            each.materialization_id,
            each.output.asset_key,
            each.output.partition_key or "whole",
            show.when(each.record_time),
            each.run_id,
        ]
        for each in found
    ]
    return show.print_table(["VERSION", "ASSET", "PARTITION", "MADE", "RUN"], rows)


@quarantine_app.add("approve")
@with_server
def approve_command(server: Server, version: Version, comment: Comment = "", as_json: AsJson = False) -> None:
    """Promote a version despite its failed checks."""
    _resolve(server, version, "APPROVE", comment, as_json)


@quarantine_app.add("reject")
@with_server
def reject_command(server: Server, version: Version, comment: Comment = "", as_json: AsJson = False) -> None:
    """Reject a version; readers keep the previous one."""
    _resolve(server, version, "REJECT", comment, as_json)


def _resolve(server: Server, version: str, decision: str, comment: str, as_json: bool) -> None:
    from servo.v1 import scheduler_data_pb2, state_pb2

    request = scheduler_data_pb2.ResolveQuarantineRequest(
        tenant=server.tenant,
        workspace=server.workspace,
        materialization_id=version,
        decision=f"QUARANTINE_DECISION_{decision}",
        comment=comment,
    )
    with server.client() as client:
        answer = client.scheduler.ResolveQuarantine(request)
    if as_json:
        return show.print_message(answer)
    state = state_pb2.MaterializationState.Name(answer.materialization.state).removeprefix("MATERIALIZATION_STATE_")
    return click.echo(f"{version} {state}")
