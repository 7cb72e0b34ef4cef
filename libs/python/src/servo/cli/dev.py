"""``servo dev``"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from . import show
from .build import Folder
from .commands import Option
from .exit_codes import NotWorking
from .server import DEV_FILE
from .show import AsJson

if TYPE_CHECKING:
    from servo.dev.mesh import Mesh
    from servo.dev.worker import RunningWorker

OwnWorkspace = Annotated[str, Option(help="The workspace to deploy into.")]
Slots = Annotated[int, Option(min=1, help="Tasks at the same time.")]
NoWorker = Annotated[bool, Option("--no-worker", help="Start none; start workers yourself with `servo worker`.")]

_LOOK_SECONDS = 0.5


def dev_command(
    folder: Folder = Path(),
    workspace: OwnWorkspace = "default",
    slots: Slots = 4,
    no_worker: NoWorker = False,
    as_json: AsJson = False,
) -> None:
    """Run server and worker on this machine, and deploy whenever you save."""
    from servo.build.settings import ProjectSettings
    from servo.dev.binary import standalone
    from servo.dev.mesh import MeshFailed, announce, running
    from servo.dev.worker import WorkerFailed, working

    folder = folder.resolve()
    ProjectSettings.read(folder)
    # Fails before anything is announced if the server's binary is missing.
    standalone()
    own = folder / ".servo"
    stop = _stopped_by_signals()
    try:
        if not as_json:
            click.echo("starting the server: a private Postgres and all services (seconds, the first time a few more)")
        with running(own, workspace) as mesh, _announced(mesh, own / DEV_FILE, announce):
            _print_event(mesh, as_json)
            with nullcontext() if no_worker else working(mesh, own / "worker", slots=slots) as worker:
                _Deployments(folder, mesh, worker, as_json).keep(stop)
    except (MeshFailed, WorkerFailed) as error:
        raise NotWorking(str(error)) from None
    if not as_json:
        click.echo("stopped")


def _stopped_by_signals() -> threading.Event:
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop


@contextmanager
def _announced(mesh: Mesh, file: Path, announce: Callable[[Mesh, Path], None]) -> Iterator[None]:
    announce(mesh, file)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


class _Deployments:
    """Deploys the project once, and again whenever a file changes."""

    def __init__(self, folder: Path, mesh: Mesh, worker: RunningWorker | None, as_json: bool) -> None:
        self._folder, self._mesh, self._worker, self._as_json = folder, mesh, worker, as_json

    def keep(self, stop: threading.Event) -> None:
        from servo.dev.changes import changed, snapshot

        deployed = before = snapshot(self._folder)
        self._deploy()
        while not stop.wait(_LOOK_SECONDS):
            self._mesh.check()
            if self._worker:
                self._worker.check()
            now = snapshot(self._folder)
            # Waits until files stop changing, because several are often saved together.
            if now == before and now != deployed:
                files = [str(Path(each).relative_to(self._folder)) for each in changed(deployed, now)]
                self._print(f"\n{', '.join(files[:3])}{' and more' if len(files) > 3 else ''} changed")
                self._deploy()
                deployed = now
            before = now

    def _deploy(self) -> None:
        """In a process of its own, which imports the project's modules afresh."""
        from servo.dev import process

        command = [sys.executable, "-m", "servo.cli", "deploy", str(self._folder), "--yes"]
        command += ["--json"] if self._as_json else []
        started = process.start(command, environment=self._mesh.environment, stdout=sys.stdout, stderr=sys.stderr)
        if started.wait() != 0:
            self._print("not deployed; correct it and save, the deployment before stays")

    def _print(self, text: str) -> None:
        if not self._as_json:
            click.echo(text)


def _print_event(mesh: Mesh, as_json: bool) -> None:
    if as_json:
        return show.print_json(mesh.facts)
    click.echo(f"  API        {mesh.url}  tenant {mesh.tenant}, workspace {mesh.workspace}")
    click.echo(f"  API key    {mesh.api_key_file}  (keys of other roles are beside it)")
    click.echo(f"  logs       {mesh.logs}")
    return click.echo("commands in this folder find it by themselves; Ctrl-C stops it\n")
