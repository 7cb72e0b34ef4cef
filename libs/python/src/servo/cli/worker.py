"""``servo worker``"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from .commands import Option
from .server import Server, with_server

Slots = Annotated[int, Option(min=1, help="Attempts at the same time.")]
State = Annotated[Path, Option(help="The folder for code, and for outcomes until the server has them.")]
OnlyWorkspace = Annotated[list[str] | None, Option(help="Serve only this workspace; may be repeated.")]
Capability = Annotated[list[str] | None, Option(help="A capability of this worker; may be repeated.")]
Pool = Annotated[list[str] | None, Option(help="Serve only this pool; may be repeated.")]
JsonLog = Annotated[bool, Option("--json", help="Log as lines of JSON.")]
Seconds = Annotated[
    float, Option(min=0, help="Seconds from a request to shut down to the end; running attempts are then returned.")
]


@with_server
def worker_command(
    server: Server,
    slots: Slots = 2,
    state: State = Path(".servo/worker"),
    workspace: OnlyWorkspace = None,
    capability: Capability = None,
    pool: Pool = None,
    drain_grace: Seconds = 30.0,
    as_json: JsonLog = False,
) -> None:
    """Take tasks and run them until SIGTERM or Ctrl-C."""
    import asyncio
    import logging
    import signal

    from servo.client.aio import AsyncClient
    from servo.worker.worker import Worker, WorkerConfig

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    if as_json:
        _log_as_json()
    config = WorkerConfig(
        tenant=server.tenant,
        folder=state.resolve(),
        slots=slots,
        workspaces=workspace or (),
        capabilities=capability or (),
        pools=pool or (),
        drain_grace=drain_grace,
    )

    async def work() -> None:
        # The client is not bound to a workspace, because each envelope names its own.
        client = AsyncClient(server.url, **server.identity())
        async with client:
            worker = Worker(client, config)
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, worker.leave)
            await worker.run()

    asyncio.run(work())


def _log_as_json() -> None:
    import json
    import logging

    class Lines(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            fields = {"time": self.formatTime(record), "level": record.levelname, "logger": record.name}
            return json.dumps({**fields, "message": super().format(record)})

    for handler in logging.getLogger().handlers:
        handler.setFormatter(Lines())
