"""The server of a command and the caller's identity: from options, the environment, or the running ``servo dev``."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from servo.errors import InvalidValue

from .commands import Option

if TYPE_CHECKING:
    from servo.client.sync import Client

# Written by `servo dev` into the project's .servo folder while it runs.
DEV_FILE = "dev.json"

Url = Annotated[str, Option(envvar="SERVO_URL", help="The gateway: https://host:port")]
ApiKey = Annotated[str, Option(envvar="SERVO_API_KEY", help="Better given in the environment.")]
TokenFile = Annotated[
    Path | None, Option(envvar="SERVO_TOKEN_FILE", help="A file with the API key, read before every call.")
]
Tenant = Annotated[str, Option(envvar="SERVO_TENANT", help="The tenant.")]
Workspace = Annotated[str, Option(envvar="SERVO_WORKSPACE", help="The workspace.")]
CaFile = Annotated[Path | None, Option(envvar="SERVO_CA_FILE", help="The authority of the server's certificate.")]
ServerName = Annotated[str, Option(envvar="SERVO_SERVER_NAME", help="The name in that certificate.")]


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    api_key: str
    token_file: Path | None
    tenant: str
    workspace: str
    ca_file: Path | None
    server_name: str

    def client(self) -> Client:
        from servo.client.sync import Client

        return Client(self.url, **self.identity())

    def identity(self) -> dict[str, Any]:
        """The arguments of a client in addition to the address."""
        return {
            "api_key": self.api_key,
            "token": self.token_file,
            "tenant": self.tenant,
            "workspace": self.workspace,
            "ca_file": self.ca_file,
            "server_name": self.server_name,
        }


def with_server(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that name a server to a command, which receives them as its first argument.
    A command's own option of the same name wins.
    """
    _, *own = inspect.signature(command, eval_str=True).parameters.values()
    names = {each.name for each in own}
    options = [
        each for each in inspect.signature(_options, eval_str=True).parameters.values() if each.name not in names
    ]

    @functools.wraps(command)
    def called(**given: Any) -> None:
        server = resolve_server({option.name: given.pop(option.name) for option in options})
        command(server, **given)

    called.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*own, *options)]
    )
    called.__annotations__ = {}
    return called


def _options(
    url: Url = "",
    api_key: ApiKey = "",
    token_file: TokenFile = None,
    tenant: Tenant = "",
    workspace: Workspace = "",
    ca_file: CaFile = None,
    server_name: ServerName = "",
) -> None:
    """Declares the options; never called."""


def resolve_server(given: dict[str, Any]) -> Server:
    """The server that options or environment name, else the ``servo dev`` of this project."""
    if not given["url"]:
        found = dev_server(Path.cwd())
        if found is None:
            raise InvalidValue(
                "no server is named: start `servo dev` in your project, or set SERVO_URL, SERVO_API_KEY, SERVO_TENANT "
                "and SERVO_WORKSPACE (options of the same names win)"
            )
        given = {name: value or found[name] for name, value in given.items()}
    for name in ("tenant", "workspace"):
        if not given.get(name, "any"):
            raise InvalidValue(f"no {name} is named: set SERVO_{name.upper()}, or give --{name}")
    for name in ("ca_file", "token_file"):
        if given[name] and not given[name].is_file():
            raise InvalidValue(f"there is no file {given[name]}: correct SERVO_{name.upper()} or --{_dashed(name)}")
    return Server(**{"workspace": "any", **given})


def dev_server(folder: Path) -> dict[str, Any] | None:
    """The ``dev.json`` of the nearest ``servo dev`` in this folder or above it."""
    for parent in (folder, *folder.parents):
        file = parent / ".servo" / DEV_FILE
        if file.is_file():
            dev_file = json.loads(file.read_text())
            key = Path(dev_file["api_key_file"])
            return {
                "url": dev_file["url"],
                "api_key": key.read_text().strip() if key.is_file() else "",
                "token_file": None,
                "tenant": dev_file["tenant"],
                "workspace": dev_file["workspace"],
                "ca_file": Path(dev_file["ca_file"]),
                "server_name": dev_file["server_name"],
            }
    return None


def _dashed(name: str) -> str:
    return name.replace("_", "-")
