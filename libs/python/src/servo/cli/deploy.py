"""``servo deploy``"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from .build import CodeVersion, Folder, build_project
from .commands import Option
from .confirm import confirm
from .server import Server, with_server
from .show import AsJson, counted, print_message, print_warnings

if TYPE_CHECKING:
    from servo.client.sync import Client
    from servo.v1 import deployment_pb2

Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, Option(help="Only show what would change.")]
Comment = Annotated[str, Option(help="Why, for the record.")]


@with_server
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
    built = build_project(folder, None, code_version)
    with server.client() as client:
        client.upload(built.archive, "SOURCE_ARCHIVE")
        answer = client.deploy(built.manifest, validate_only=True)
        asking = not (yes or dry_run)
        if asking or not as_json:
            print_diff(
                answer.diff, built.archive_digest, new_code=_artifact(client) != built.archive_digest, err=as_json
            )
            print_warnings(answer.warnings, err=as_json)
        if asking:
            confirm("Deploy this?")
        if not dry_run:
            answer = client.deploy(built.manifest, comment=comment)
    if as_json:
        print_message(answer)
    elif not dry_run:
        click.echo(f"deployed version {answer.deployment.version}: {answer.deployment.deployment_id}")


def _artifact(client: Client) -> str:
    """The digest of the deployed code; empty before the first deployment."""
    from servo.client.errors import NotFound

    try:
        return client.deployment().artifact_digest
    except NotFound:
        return ""


def print_diff(diff: deployment_pb2.DeploymentDiff, archive: str, *, new_code: bool, err: bool) -> None:
    """Prints the difference. ``archive`` is the digest of the new code; ``err`` prints to stderr,
    before a confirmation.
    """
    from servo.v1 import deployment_pb2

    signs = {
        deployment_pb2.CHANGE_KIND_ADDED: "+",
        deployment_pb2.CHANGE_KIND_CHANGED: "~",
        deployment_pb2.CHANGE_KIND_REMOVED: "-",
    }
    by_code = 0
    for change in diff.changes:
        if new_code and _is_only_code(change, archive):
            by_code += 1
            continue
        fields = ", ".join(field.path for field in change.fields)
        stale = "; its data becomes stale" if change.makes_stale else ""
        click.echo(f"  {signs.get(change.change, ' ')} {change.key}{f'  ({fields}{stale})' if fields else ''}", err=err)
    if by_code:
        what = "the code changes, the definitions stay" if by_code == len(diff.changes) else "the code changes"
        click.echo(f"  {what}: the data of {counted(by_code, 'asset')} becomes stale", err=err)
    if not diff.changes:
        click.echo("  the code changes, the definitions stay" if new_code else "  nothing changes", err=err)
    if diff.stale_partitions:
        held = f"{counted(diff.stale_partitions, 'partition')} {'holds' if diff.stale_partitions == 1 else 'hold'}"
        click.echo(f"  {held} data of other code", err=err)


def _is_only_code(change: deployment_pb2.DefinitionChange, archive: str) -> bool:
    """Whether only the code version changed. All assets then change alike, because the archive's
    digest is the default version, so one line covers them.
    """
    fields = [(field.path, field.after_json) for field in change.fields]
    return change.makes_stale and fields == [("code_version", f'"{archive}"')]
