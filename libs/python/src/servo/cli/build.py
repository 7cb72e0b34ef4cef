"""``servo build``"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from .commands import Argument, Option
from .show import AsJson, print_json, print_warnings

if TYPE_CHECKING:
    from servo.build.build import Built

Folder = Annotated[Path, Argument(help="The project: the folder with servo.toml, or with your code.")]
CodeVersion = Annotated[str, Option(help="The version of your code, a commit for instance.")]
Out = Annotated[Path | None, Option(help="Where the files go; .servo/build in the project unless given.")]


def build_command(
    folder: Folder = Path(), out: Out = None, code_version: CodeVersion = "", as_json: AsJson = False
) -> None:
    """Check and package a project: manifest, sources and locked requirements, named by digest."""
    built = build_project(folder, out, code_version)
    summary = built.summary()
    if as_json:
        return print_json(summary)
    click.echo(f"{summary['assets']} assets, {summary['schedules']} schedules, {summary['sensors']} sensors")
    click.echo(f"  manifest      {summary['manifest']}")
    click.echo(f"  sources       {summary['archive']}  ({summary['archive_bytes']} bytes)")
    click.echo(f"  requirements  {summary['requirements']}")
    return print_warnings(built.warnings)


def build_project(folder: Path, out: Path | None, code_version: str) -> Built:
    from servo.build.build import build

    built = build(folder, code_version=code_version)
    built.write(out or folder / ".servo" / "build")
    return built
