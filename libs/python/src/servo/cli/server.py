"""Options that say which server, and as whom."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Url = Annotated[str, typer.Option(envvar="SERVO_URL", help="The gateway: https://host:port")]
ApiKey = Annotated[str, typer.Option(envvar="SERVO_API_KEY", help="Better given in the environment.")]
Tenant = Annotated[str, typer.Option(envvar="SERVO_TENANT")]
Workspace = Annotated[str, typer.Option(envvar="SERVO_WORKSPACE")]
CaFile = Annotated[Path | None, typer.Option(envvar="SERVO_CA_FILE", help="The authority of the server's certificate.")]
ServerName = Annotated[str, typer.Option(envvar="SERVO_SERVER_NAME", help="The name in that certificate.")]
