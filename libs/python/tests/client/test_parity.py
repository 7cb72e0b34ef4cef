"""The clients have the same methods and behaviour."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from pathlib import Path

import pytest

from servo import AsyncClient, Client, Run

from ..cli.shop import CALM_DAY, shop_on
from ..mesh import Mesh


def public(client: type) -> dict[str, object]:
    return {name: each for name, each in vars(client).items() if not name.startswith("_")}


def test_sync_and_async_clients_have_equal_methods() -> None:
    plain, other = public(Client), public(AsyncClient)
    # Workers need these, and workers are asynchronous.
    assert set(other) - set(plain) == {"at", "in_workspace"}
    assert set(plain) <= set(other)
    for name, method in plain.items():
        if inspect.isfunction(method):
            theirs = inspect.signature(other[name])  # type: ignore[arg-type]
            assert inspect.signature(method).parameters == theirs.parameters, name


def test_rust_client_has_every_method(repository: Path) -> None:
    crate = repository / "libs/client/src"
    sources = [file.read_text() for file in (crate / "client.rs", *(crate / "workspace").glob("*.rs"))]
    methods = {name for text in sources for name in re.findall(r"^    pub (?:async )?fn (\w+)", text, re.MULTILINE)}
    # Rust closes a client when it is dropped.
    assert set(public(AsyncClient)) - methods == {"close"}


@pytest.mark.mesh
def test_sync_and_async_clients_report_the_same_run(mesh: Mesh, tmp_path: Path) -> None:
    shop = shop_on(mesh, "parity", tmp_path)
    shop.ok("deploy", "--yes")
    with shop.worker("--workspace", "parity"):
        call_failed = json.loads(shop.ok("run", "+shop/daily_revenue", "-p", f"day={CALM_DAY}", "--wait", "--json"))
    run_id, key = call_failed["run_id"], "shop/daily_revenue"
    wanted = Run(key, partitions=f"day=d:{CALM_DAY}")

    async def request_copy() -> list[object]:
        async with mesh.async_client("parity") as client:
            tasks = [task async for task in client.tasks(run_id)]
            return [
                await client.run(run_id),
                tasks,
                await client.task(run_id, tasks[0].task_id),
                await client.plan(wanted),
                await client.deployment(),
                await client.asset(key),
                await client.lineage(f"+{key}"),
                [each async for each in client.explain(run_id)],
                [each async for each in client.materializations(filter=f'run_id = "{run_id}"')],
                [each.worker_id async for each in client.workers()],
                [each async for each in client.logs(run_id, follow=True, min_level="info")],
                (await client.wait(run_id, timeout=10)).state,
            ]

    with mesh.client("parity") as client:
        tasks = list(client.tasks(run_id))
        assert asyncio.run(request_copy()) == [
            client.run(run_id),
            tasks,
            client.task(run_id, tasks[0].task_id),
            client.plan(wanted),
            client.deployment(),
            client.asset(key),
            client.lineage(f"+{key}"),
            list(client.explain(run_id)),
            list(client.materializations(filter=f'run_id = "{run_id}"')),
            [each.worker_id for each in client.workers()],
            list(client.logs(run_id, follow=True, min_level="info")),
            client.wait(run_id, timeout=10).state,
        ]
        assert len(tasks) == 3
