"""``servo deploy``"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .ask import ask
from .build import CodeVersion, Folder, built_at
from .server import Server, connected
from .show import AsJson, print_message

if TYPE_CHECKING:
    from servo.client.sync import Client
    from servo.v1 import deployment_pb2

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option(help="Only show what would change.")]
Comment = Annotated[str, typer.Option(help="Why, for the record.")]


@connected
def deploy_command(
    server: Server,
    folder: Folder = Path(),
    code_version: CodeVersion = "",
    comment: Comment = "",
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Build a project, show what would change, and make it the workspace's current deployment."""
    built = built_at(folder, None, code_version)
    with server.client() as client:
        client.upload(built.archive, "SOURCE_ARCHIVE")
        answer = client.deploy(built.manifest, validate_only=True)
        asking = not (yes or dry_run)
        if asking or not as_json:
            _show(answer.diff, new_code=_artifact(client) != built.archive_digest, err=as_json)
        if asking:
            ask("Deploy this?")
        if not dry_run:
            answer = client.deploy(built.manifest, comment=comment)
    if as_json:
        print_message(answer)
    elif not dry_run:
        typer.echo(f"deployed version {answer.deployment.version}: {answer.deployment.deployment_id}")


def _artifact(client: Client) -> str:
    """What runs now; nothing before the first deployment."""
    from servo.client.errors import NotFound

    try:
        return client.deployment().artifact_digest
    except NotFound:
        return ""


def _show(diff: deployment_pb2.DeploymentDiff, *, new_code: bool, err: bool) -> None:
    """``err`` on stderr, where it is for the one who is asked."""
    from servo.v1 import deployment_pb2

    signs = {
        deployment_pb2.CHANGE_KIND_ADDED: "+",
        deployment_pb2.CHANGE_KIND_CHANGED: "~",
        deployment_pb2.CHANGE_KIND_REMOVED: "-",
    }
    by_code = 0
    for change in diff.changes:
        if new_code and _is_code_alone(change):
            by_code += 1
            continue
        fields = ", ".join(field.path for field in change.fields)
        stale = "; its data becomes stale" if change.makes_stale else ""
        typer.echo(f"  {signs.get(change.change, ' ')} {change.key}{f'  ({fields}{stale})' if fields else ''}", err=err)
    if by_code:
        count = f"{by_code} asset{'s' * (by_code > 1)}"
        typer.echo(f"  the code changes, the definitions stay: the data of {count} becomes stale", err=err)
    if not diff.changes:
        typer.echo("  the code changes, the definitions stay" if new_code else "  nothing changes", err=err)
    if diff.stale_partitions:
        typer.echo(f"  {diff.stale_partitions} partitions hold data of other code", err=err)


def _is_code_alone(change: deployment_pb2.DefinitionChange) -> bool:
    """One line says it for all: every asset of the archive has its digest as code version."""
    return change.makes_stale and [field.path for field in change.fields] == ["code_version"]
