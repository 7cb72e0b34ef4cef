"""``servo demo``"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated

import click

from . import show
from .commands import Option
from .exit_codes import RUN_FAILED, NotWorking
from .show import AsJson

OwnFolder = Annotated[Path, Option("--dir", help="Where server and project are kept.")]

_ASSET = "shop/daily_revenue"


def demo_command(folder: OwnFolder = Path(".servo/demo"), as_json: AsJson = False) -> None:
    """Start a server, deploy and run the example project, print its table, stop."""
    from servo.dev.mesh import Mesh, MeshFailed, running
    from servo.dev.worker import working

    from .init import template_files

    folder = folder.resolve()
    project = folder / "shop"
    shutil.rmtree(project, ignore_errors=True)
    for name, content in template_files().items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_bytes(content)
    # A new workspace each time, so that every asset in it is new.
    workspace = f"demo-{datetime.now():%Y%m%d-%H%M%S}"

    def say(text: str) -> None:
        if not as_json:
            click.echo(text)

    def servo(mesh: Mesh, *words: str) -> None:
        say(f"\n$ servo {' '.join(words)}")
        command = [sys.executable, "-m", "servo.cli", *words]
        out = subprocess.DEVNULL if as_json else None
        sys.stdout.flush()
        done = subprocess.run(command, cwd=project, env={**os.environ, **mesh.environment}, stdout=out, check=False)
        if done.returncode:
            raise click.exceptions.Exit(RUN_FAILED)

    say("starting a private Postgres and all services")
    try:
        with running(folder / "server", workspace) as mesh:
            say(f"  {mesh.url} is running; its logs are in {mesh.logs}")
            with working(mesh, folder / "worker", slots=2):
                servo(mesh, "deploy", "--yes")
                servo(mesh, "run", f"+{_ASSET}", "--partition", "latest:4", "--wait")
                servo(mesh, "assets", "show", _ASSET, "--versions", "4")
                servo(mesh, "assets", "preview", _ASSET)
    except MeshFailed as error:
        raise NotWorking(str(error)) from None
    if as_json:
        return show.print_json({"workspace": workspace, "folder": str(folder)})
    return say("\nstopped everything; `servo init` makes this project yours")
