"""``servo deploy``"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .build import AsJson, CodeVersion, Folder, built_at
from .server import ApiKey, CaFile, ServerName, Tenant, Url, Workspace

if TYPE_CHECKING:
    from servo.v1 import deployment_pb2

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option(help="Only show what would change.")]
Comment = Annotated[str, typer.Option(help="Why, for the record.")]


def deploy_command(
    url: Url,
    api_key: ApiKey,
    tenant: Tenant,
    workspace: Workspace,
    folder: Folder = Path(),
    ca_file: CaFile = None,
    server_name: ServerName = "",
    code_version: CodeVersion = "",
    comment: Comment = "",
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Build a project, show what would change, and make it the workspace's current deployment."""
    import json

    from google.protobuf.json_format import MessageToDict

    from servo.client.sync import Client

    built = built_at(folder, None, code_version)
    with Client(
        url, api_key=api_key, tenant=tenant, workspace=workspace, ca_file=ca_file, server_name=server_name
    ) as client:
        client.upload(built.archive, "SOURCE_ARCHIVE")
        answer = client.deploy(built.manifest, validate_only=True)
        if not as_json:
            _show(answer.diff)
        if not dry_run:
            if not (yes or as_json):
                typer.confirm("Deploy this?", abort=True)
            answer = client.deploy(built.manifest, comment=comment)
    if as_json:
        typer.echo(json.dumps(MessageToDict(answer, preserving_proto_field_name=True)))
    elif not dry_run:
        typer.echo(f"deployed version {answer.deployment.version}: {answer.deployment.deployment_id}")


def _show(diff: deployment_pb2.DeploymentDiff) -> None:
    from servo.v1 import deployment_pb2

    signs = {
        deployment_pb2.CHANGE_KIND_ADDED: "+",
        deployment_pb2.CHANGE_KIND_CHANGED: "~",
        deployment_pb2.CHANGE_KIND_REMOVED: "-",
    }
    for change in diff.changes:
        fields = ", ".join(field.path for field in change.fields)
        stale = "; its data becomes stale" if change.makes_stale else ""
        typer.echo(f"  {signs.get(change.change, ' ')} {change.key}{f'  ({fields}{stale})' if fields else ''}")
    if not diff.changes:
        typer.echo("  nothing changes")
