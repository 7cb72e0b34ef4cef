"""``servo assets``"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated

import click

from . import show
from .commands import Argument, Group, Option
from .server import Server, with_server
from .show import AsJson

if TYPE_CHECKING:
    from servo.v1 import deployment_pb2, planner_pb2

Selection = Annotated[list[str] | None, Argument(help="Assets, as in `servo run`; all unless given.")]
Key = Annotated[str, Argument(help="The asset: namespace/name.")]
Filter = Annotated[str, Option(help="Such as 'namespace = raw', over key, namespace, tags, owners, pool and source.")]
Versions = Annotated[int, Option(min=0, help="How many of its newest versions of data are shown.")]

Partitions = Annotated[int, Option(min=1, help="How many of its newest partitions.")]
Checked = Annotated[str, Argument(help="The asset: namespace/name; all unless given.")]
OfRun = Annotated[str, Option("--run", help="Only of this run.")]
Failed = Annotated[bool, Option("--failed", help="Only what did not pass.")]
Limit = Annotated[int, Option(min=1, help="At most this many.")]
Rows = Annotated[int, Option(min=1, help="At most this many rows.")]

assets_app = Group()


@assets_app.add("list")
@with_server
def list_command(
    server: Server,
    selection: Selection = None,
    filter: Filter = "",  # noqa: A002
    as_json: AsJson = False,
) -> None:
    """List the deployed assets."""
    with server.client() as client:
        assets = list(client.assets(*(selection or ()), filter=filter))
    if as_json:
        return show.print_list(assets)
    if not assets:
        return click.echo("no assets; `servo deploy` brings them")
    return show.print_table(["ASSET", "PARTITIONS", "CHECKS", "READS"], [_row(asset) for asset in assets])


@assets_app.add("show")
@with_server
def show_command(server: Server, key: Key, versions: Versions = 5, as_json: AsJson = False) -> None:
    """Show one asset: its dependencies and readers, its settings, its newest data."""
    with server.client() as client:
        asset = client.asset(key)
        found = list(islice(client.materializations(filter=f'asset_key = "{asset.asset_key}"'), versions))
    if as_json:
        return show.print_json(
            {"asset": show.as_dict(asset), "materializations": [show.as_dict(each) for each in found]}
        )
    _show_asset(asset)
    for each in found:
        rows = show.counted(each.output.row_count, "row") if each.output.HasField("row_count") else "-"
        partition = each.output.partition_key or "whole"
        click.echo(f"  {partition}  {_state(each.state)}  {rows}  {show.when(each.record_time)}  {each.output.uri}")
    return None


@assets_app.add("lineage")
@with_server
def lineage_command(server: Server, selection: Selection = None, as_json: AsJson = False) -> None:
    """Show the graph around assets; each asset's readers are listed below it."""
    with server.client() as client:
        graph = client.lineage(*(selection or ()))
    if as_json:
        return show.print_message(graph)
    for line in _tree(graph):
        click.echo(line)
    return click.echo("…and more: name fewer assets") if graph.truncated else None


@assets_app.add("preview")
@with_server
def preview_command(
    server: Server, key: Key, partitions: Partitions = 10, rows: Rows = 50, as_json: AsJson = False
) -> None:
    """Show the newest data of an asset as a table."""
    from . import preview

    with server.client() as client:
        found = preview.newest(client, client.asset(key).asset_key, partitions)
    columns, values = preview.rows([folder for _, folder in found], rows)
    if as_json:
        return show.print_json(preview.plain(columns, values))
    return show.print_table(columns, [[str(each) for each in row] for row in values])


@assets_app.add("checks")
@with_server
def checks_command(
    server: Server,
    key: Checked = "",
    run: OfRun = "",
    failed: Failed = False,
    limit: Limit = 20,
    as_json: AsJson = False,
) -> None:
    """List check results, newest first."""
    from . import check_results

    with server.client() as client:
        asset_key = client.asset(key).asset_key if key else ""
        request = {"asset_key": asset_key, "run_id": run, "passed": "false" if failed else ""}
        records = list(islice(check_results.results(client, **request), limit))
    if as_json:
        return show.print_list(records)
    if not records:
        return click.echo("no check found anything wrong" if failed else "no check has run")
    return show.print_table(
        ["WHEN", "ASSET", "CHECK", "RESULT", "SEVERITY", "WHY"], [check_results.row(each) for each in records]
    )


def _row(asset: deployment_pb2.Asset) -> list[str]:
    definition = asset.definition
    partitions = str(asset.partition_count) if definition.partitions.dimensions else "-"
    return [asset.asset_key, partitions, str(len(definition.checks) or "-"), " ".join(asset.upstream_keys) or "-"]


def _show_asset(asset: deployment_pb2.Asset) -> None:
    definition = asset.definition
    dimensions = ", ".join(each.name for each in definition.partitions.dimensions)
    click.secho(asset.asset_key, bold=True)
    if definition.description:
        click.echo(definition.description)
    code = definition.code.entry_point
    lines = {
        "reads": ", ".join(asset.upstream_keys),
        "read by": ", ".join(asset.downstream_keys),
        "partitions": f"{asset.partition_count} by {dimensions}" if dimensions else "",
        "checks": ", ".join(each.name for each in definition.checks),
        "pool": definition.pool,
        "code": f"{code.module}:{code.function}" if code.module else "",
    }
    for name, text in lines.items():
        if text:
            click.echo(f"  {name.ljust(10)}  {text}")


def _state(state: int) -> str:
    from servo.v1 import state_pb2

    return state_pb2.MaterializationState.Name(state).removeprefix("MATERIALIZATION_STATE_")


def _tree(graph: planner_pb2.GetLineageResponse) -> list[str]:
    """Roots first. An asset with several dependencies is listed below each, its own tree only once."""
    below: dict[str, list[str]] = {}
    for edge in graph.edges:
        below.setdefault(edge.upstream_key, []).append(edge.downstream_key)
    made = {edge.downstream_key for edge in graph.edges}
    lines: list[str] = []
    seen: set[str] = set()
    waiting = [(asset.asset_key, 0) for asset in reversed(graph.assets) if asset.asset_key not in made]
    while waiting:
        key, depth = waiting.pop()
        known = key in seen and key in below
        lines.append(f"{'  ' * depth}{'└ ' if depth else ''}{key}{' (above)' if known else ''}")
        if not known:
            seen.add(key)
            waiting += [(each, depth + 1) for each in sorted(below.get(key, ()), reverse=True)]
    return lines
