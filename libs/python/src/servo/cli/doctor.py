"""``servo doctor``"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import show
from .exit_codes import NOT_FOUND, WRONG_USE, exit_code
from .server import ApiKey, CaFile, ServerName, Tenant, TokenFile, Url, Workspace, dev_server, resolve_server
from .show import AsJson

if TYPE_CHECKING:
    from servo.v1 import worker_pb2

    from .server import Server

_POSTGRES_MAJOR_MIN = 15


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    message: str
    # The remedy; empty if there is no problem.
    remedy: str = ""
    # The exit code; 0 if Servo works without it.
    code: int = 0


def doctor_command(
    url: Url = "",
    api_key: ApiKey = "",
    token_file: TokenFile = None,
    tenant: Tenant = "",
    workspace: Workspace = "",
    ca_file: CaFile = None,
    server_name: ServerName = "",
    as_json: AsJson = False,
) -> None:
    """Check that everything Servo needs is available, and say how to fix the rest."""
    from servo.errors import ServoError

    found = [_python(), _tables(), _binary(), _postgres()]
    given = {"url": url, "api_key": api_key, "token_file": token_file, "tenant": tenant, "workspace": workspace}
    given |= {"ca_file": ca_file, "server_name": server_name}
    if url or dev_server(Path.cwd()):
        try:
            found += _server_findings(resolve_server(given))
        except ServoError as error:
            found.append(Finding("server", str(error), "correct what it names", exit_code(error)))
    else:
        found.append(Finding("server", "none is named", "`servo dev` starts one here, SERVO_URL names another"))
    if as_json:
        show.print_json([asdict(each) for each in found])
    else:
        for each in found:
            _show(each)
    raise click.exceptions.Exit(next((each.code for each in found if each.code), 0))


def _show(found: Finding) -> None:
    mark, colour = ("✗", "red") if found.code else ("!", "yellow") if found.remedy else ("✓", "green")
    click.echo(f"{click.style(mark, fg=colour)} {found.what.ljust(12)}  {found.message}")
    if found.remedy:
        click.echo(f"  {''.ljust(12)}  → {found.remedy}")


def _python() -> Finding:
    from servo import __version__

    return Finding("servo", f"{__version__} on Python {sys.version.split()[0]} at {sys.executable}")


def _tables() -> Finding:
    from servo.execute.packages import install_command, missing_tables

    missing = missing_tables()
    if not missing:
        return Finding("tables", "pyarrow and DuckDB are installed")
    text = f"{' and '.join(missing)} not installed: no frames, no SQL and schema checks, no previews"
    return Finding("tables", text, install_command(missing[0]))


def _binary() -> Finding:
    from servo.dev.binary import NoBinary, standalone

    try:
        return Finding("binary", str(standalone()))
    except NoBinary as error:
        return Finding("binary", "none is installed for `servo dev` to start", str(error).partition(": ")[2])


def _postgres() -> Finding:
    if os.environ.get("SERVO_DATABASE_URL"):
        return Finding("postgres", "SERVO_DATABASE_URL names one for `servo dev`")
    folders = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if path.parent.name.isdigit()]
    newest = max((int(path.parent.name) for path in folders), default=0)
    if newest >= _POSTGRES_MAJOR_MIN:
        return Finding("postgres", f"version {newest} is installed")
    if shutil.which("postgres"):
        return Finding("postgres", f"{shutil.which('postgres')}")
    remedy = f"install {_POSTGRES_MAJOR_MIN} or newer (Debian: `apt-get install postgresql`), or set SERVO_DATABASE_URL"
    return Finding("postgres", "none is installed for `servo dev` to start", remedy)


def _server_findings(server: Server) -> Iterator[Finding]:
    from servo.client.errors import NotFound
    from servo.errors import ServoError

    who = f"tenant {server.tenant}, workspace {server.workspace}"
    with server.client() as client:
        try:
            deployment = client.deployment()
            yield Finding("server", f"{server.url} answers; {who}")
            yield Finding("deployment", f"version {deployment.version} of {show.when(deployment.deploy_time)}")
        except NotFound:
            yield Finding("server", f"{server.url} answers; {who}")
            yield Finding("deployment", "nothing is deployed in this workspace", "`servo deploy`", NOT_FOUND)
        except ServoError as error:
            code = exit_code(error)
            yield Finding("server", f"{server.url}: {error}", _REMEDIES.get(code, _REMEDIES[WRONG_USE]), code)
            return
        try:
            workers = [each for each in client.workers() if _serves(each, server.workspace)]
        except ServoError as error:
            yield Finding("workers", str(error))
            return
    if workers:
        slots = sum(each.info.slots for each in workers)
        yield Finding("workers", f"{show.counted(len(workers), 'worker')} with {show.counted(slots, 'slot')}")
    else:
        yield Finding("workers", "none serves this workspace: tasks will wait", "`servo worker`, or `servo dev`", 7)


def _serves(worker: worker_pb2.Worker, workspace: str) -> bool:
    from servo.v1 import worker_pb2

    here = not worker.info.workspaces or workspace in worker.info.workspaces
    return here and worker.state == worker_pb2.WORKER_STATE_ACTIVE


_REMEDIES = {
    4: "set SERVO_API_KEY to a key of this server and tenant",
    7: "start it, or correct SERVO_URL, SERVO_CA_FILE and SERVO_SERVER_NAME",
    WRONG_USE: "correct what it names",
}
