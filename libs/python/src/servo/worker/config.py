"""The configuration of a worker."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import servo
from servo.errors import InvalidValue
from servo.v1 import worker_pb2

_PUSH_URL, _PUSH_LISTEN = "SERVO_PUSH_URL", "SERVO_PUSH_LISTEN"
_PUSH_CERTIFICATE, _PUSH_KEY = "SERVO_PUSH_CERTIFICATE", "SERVO_PUSH_KEY"


@dataclass(frozen=True, slots=True)
class PushConfig:
    """The listener of a worker in push mode."""

    # The address under which the server reaches it.
    url: str
    host: str
    # 0 chooses a free port, which the URL then cannot name.
    port: int
    # For a URL with https://; PEM files.
    certificate: str = ""
    key: str = ""

    @classmethod
    def of(cls, variables: dict[str, str]) -> PushConfig | None:
        """None without ``SERVO_PUSH_URL``."""
        url = variables.get(_PUSH_URL, "")
        if not url:
            return None
        host, _, port = variables.get(_PUSH_LISTEN, "0.0.0.0:8080").rpartition(":")
        certificate, key = variables.get(_PUSH_CERTIFICATE, ""), variables.get(_PUSH_KEY, "")
        if not port.isdecimal() or int(port) > 65_535:
            raise InvalidValue(f"{_PUSH_LISTEN} is not an address to listen at; write host:port, such as 0.0.0.0:8080")
        if url.startswith("https://") and not (certificate and key):
            raise InvalidValue(
                f"{_PUSH_URL} begins with https://; set {_PUSH_CERTIFICATE} and {_PUSH_KEY} to PEM files"
            )
        return cls(url, host.strip("[]"), int(port), certificate, key)


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    tenant: str
    # For code, environments, and unanswered outcomes.
    folder: Path
    slots: int = 2
    name: str = field(default_factory=socket.gethostname)
    workspaces: Sequence[str] = ()
    capabilities: Sequence[str] = ()
    pools: Sequence[str] = ()
    # Seconds from the request to shut down to the end of this process.
    drain_grace: float = 30.0
    # Seconds for user code after TERM.
    kill_grace: float = 5.0
    push: PushConfig | None = field(default_factory=lambda: PushConfig.of(dict(os.environ)))

    @property
    def info(self) -> worker_pb2.WorkerInfo:
        return worker_pb2.WorkerInfo(
            name=self.name,
            workspaces=self.workspaces,
            slots=self.slots,
            capabilities=self.capabilities,
            pools=self.pools,
            version=servo.__version__,
            push_url=self.push.url if self.push else "",
        )
