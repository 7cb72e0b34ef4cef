"""``servo partitions``"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated

import click

from . import show
from .assets import Key, Selection
from .commands import Argument, Group, Option
from .runs import Limit
from .server import Server, with_server
from .show import AsJson

if TYPE_CHECKING:
    from servo.v1 import materialization_pb2

Filter = Annotated[str, Option(help="Such as 'state = FAILED', over state, partition_key and times.")]
PartitionSet = Annotated[str, Argument(help="The set that assets name with Dynamic(…).")]
Values = Annotated[list[str], Argument(help="As text, such as a customer's name.")]

partitions_app = Group()


@partitions_app.add("list")
@with_server
def list_command(
    server: Server,
    key: Key,
    filter: Filter = "",  # noqa: A002
    limit: Limit = 100,
    as_json: AsJson = False,
) -> None:
    """List the partitions of an asset in order, including missing ones."""
    from servo.client.pages import pages
    from servo.model.asset_key import AssetKey
    from servo.v1 import scheduler_data_pb2

    asset = AssetKey.parse(key)
    request = scheduler_data_pb2.ListPartitionsRequest(
        tenant=server.tenant, workspace=server.workspace, namespace=asset.namespace, name=asset.name, filter=filter
    )
    with server.client() as client:
        found = list(islice(pages(client.scheduler.ListPartitions, request), limit))
    return show.print_list(found) if as_json else _show_all(found)


@partitions_app.add("summary")
@with_server
def summary_command(server: Server, key: Key, as_json: AsJson = False) -> None:
    """Count the partitions of an asset by state."""
    from servo.model.asset_key import AssetKey
    from servo.v1 import scheduler_data_pb2

    asset = AssetKey.parse(key)
    request = scheduler_data_pb2.GetPartitionSummaryRequest(
        tenant=server.tenant, workspace=server.workspace, namespace=asset.namespace, name=asset.name
    )
    with server.client() as client:
        answer = client.scheduler.GetPartitionSummary(request)
    if as_json:
        return show.print_message(answer)
    counts = ", ".join(f"{each.count} {_state(each.state)}" for each in answer.counts)
    click.echo(f"{show.counted(answer.total, 'partition')}: {counts}")
    for each in answer.stretches:
        states = ", ".join(f"{one.count} {_state(one.state)}" for one in each.counts)
        click.echo(f"  {each.first_key} … {each.last_key}  {states}")
    return None


@partitions_app.add("stale")
@with_server
def stale_command(server: Server, selection: Selection = None, limit: Limit = 100, as_json: AsJson = False) -> None:
    """List partitions that were made from outdated inputs or code, and why."""
    from servo.client.pages import pages
    from servo.v1 import scheduler_data_pb2

    request = scheduler_data_pb2.ListStalePartitionsRequest(
        tenant=server.tenant, workspace=server.workspace, selection=selection or ()
    )
    with server.client() as client:
        found = list(islice(pages(client.scheduler.ListStalePartitions, request), limit))
    if as_json:
        return show.print_list(found)
    return _show_all(found) if found else click.echo("no partition is stale")


@partitions_app.add("values")
@with_server
def values_command(server: Server, partition_set: PartitionSet, as_json: AsJson = False) -> None:
    """The values of a dynamic set of partitions, in the order they were added."""
    from servo.client.pages import pages
    from servo.v1 import planner_pb2

    request = planner_pb2.ListDynamicPartitionsRequest(
        tenant=server.tenant, workspace=server.workspace, set=partition_set
    )
    with server.client() as client:
        found = list(pages(client.planner.ListDynamicPartitions, request))
    if as_json:
        return show.print_list(found)
    if not found:
        return click.echo(f"no values; `servo partitions add {partition_set} VALUE` adds one", err=True)
    for each in found:
        click.echo(each.value)
    return None


@partitions_app.add("add")
@with_server
def add_command(server: Server, partition_set: PartitionSet, values: Values, as_json: AsJson = False) -> None:
    """Add values to a dynamic set of partitions; existing values stay."""
    from servo.v1 import planner_pb2

    request = planner_pb2.AddDynamicPartitionsRequest(
        tenant=server.tenant, workspace=server.workspace, set=partition_set, values=values
    )
    with server.client() as client:
        answer = client.planner.AddDynamicPartitions(request)
    return show.print_message(answer) if as_json else click.echo(f"{answer.added} added")


@partitions_app.add("remove")
@with_server
def remove_command(server: Server, partition_set: PartitionSet, values: Values, as_json: AsJson = False) -> None:
    """Remove values from a dynamic set of partitions; their data stays."""
    from servo.v1 import planner_pb2

    request = planner_pb2.RemoveDynamicPartitionsRequest(
        tenant=server.tenant, workspace=server.workspace, set=partition_set, values=values
    )
    with server.client() as client:
        answer = client.planner.RemoveDynamicPartitions(request)
    return show.print_message(answer) if as_json else click.echo(f"{answer.removed} removed")


def _show_all(found: list[materialization_pb2.Partition]) -> None:
    rows = [
        [
            each.asset_key,
            each.partition_key or "whole",
            _state(each.state),
            show.when(each.materialize_time),
            _why(each),
        ]
        for each in found
    ]
    show.print_table(["ASSET", "PARTITION", "STATE", "MADE", "WHY"], rows)


def _state(state: int) -> str:
    from servo.v1 import materialization_pb2

    return materialization_pb2.PartitionState.Name(state).removeprefix("PARTITION_STATE_")


def _why(partition: materialization_pb2.Partition) -> str:
    from servo.v1 import materialization_pb2

    def words(cause: materialization_pb2.StaleCause) -> str:
        reason = materialization_pb2.StaleReason.Name(cause.reason).removeprefix("STALE_REASON_").lower()
        where = (
            f" {cause.asset_key}{f'[{cause.partition_key}]' if cause.partition_key else ''}" if cause.asset_key else ""
        )
        return f"{reason.replace('_', ' ')}{where}"

    return "; ".join(words(each) for each in partition.stale_causes)
