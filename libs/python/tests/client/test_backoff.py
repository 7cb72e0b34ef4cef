"""Pauses between retries, and addresses, without a server."""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from servo import AsyncClient, Client
from servo.client.address import Address
from servo.client.backoff import Backoff
from servo.client.errors import CallFailed, Unavailable
from servo.client.methods import method, with_request_id
from servo.errors import InvalidValue
from servo.v1 import scheduler_runs_pb2


def test_pauses_grow_until_tries_or_time_run_out() -> None:
    backoff = Backoff(deadline=100.0)
    pauses = []
    while (pause := backoff.pause(now=0.0, chance=1.0)) is not None:
        pauses.append(pause)
        backoff = backoff.again()
    assert pauses == [0.05, 0.1, 0.2, 0.4]
    assert Backoff(100.0).pause(0.0, 0.0) == 0.025
    assert Backoff(100.0).pause(99.99, 0.0) is None
    assert (Backoff(5.0).left(2.0), Backoff(5.0).left(7.0)) == (3.0, 0.0)


def test_methods_know_whether_a_repeat_is_safe() -> None:
    assert method("/servo.v1.SchedulerService/GetRun") == (True, False)
    request = scheduler_runs_pb2.CancelRunRequest(run_id="x")
    named, harmless = with_request_id("/servo.v1.SchedulerService/CancelRun", request)
    assert isinstance(named, scheduler_runs_pb2.CancelRunRequest)
    assert (harmless, request.request_id, len(named.request_id), named.run_id) == (True, "", 26, "x")
    own = scheduler_runs_pb2.CancelRunRequest(request_id="mine")
    assert with_request_id("/servo.v1.SchedulerService/CancelRun", own) == (own, True)


@pytest.mark.parametrize("service", ["Access", "Automation", "Backfill", "Callback", "Dispatcher", "Planner", "Quota"])
def test_method_options_are_found_without_importing_the_service(service: str) -> None:
    """In a new process, where no other test has imported the service."""
    code = "import sys; from servo.client.methods import method; method(sys.argv[1])"
    module = importlib.import_module(f"servo.v1.{service.lower()}_pb2")
    name = module.DESCRIPTOR.services_by_name[f"{service}Service"].methods[0].name
    subprocess.run([sys.executable, "-c", code, f"/servo.v1.{service}Service/{name}"], check=True)


def test_invalid_ca_certificate_is_refused(tmp_path: Path) -> None:
    where: dict[str, Any] = {"url": "https://127.0.0.1:1", "api_key": "k", "tenant": "t", "workspace": "w"}
    (tmp_path / "empty.pem").touch()
    for client in (Client, AsyncClient):
        with pytest.raises(InvalidValue, match=r"certificate .*/ghost.pem cannot be read: No such file"):
            client(**where, ca_file=tmp_path / "ghost.pem")
        with pytest.raises(InvalidValue, match=r"there is no certificate in .*/empty.pem; name a PEM file"):
            client(**where, ca_file=str(tmp_path / "empty.pem"))


def test_closed_client_raises() -> None:
    """Whether or not it has made a call before."""
    client = Client("https://127.0.0.1:1", api_key="k", tenant="t", workspace="w")
    assert client.scheduler
    client.close()
    client.close()
    for call in (client.run, client.asset):
        with pytest.raises(CallFailed, match=r"the call cannot be made: .*closed"):
            call("run_" + "a" * 26 if call == client.run else "a/b")


def test_stream_that_never_opened_fails_after_a_few_tries() -> None:
    where: dict[str, Any] = {"url": "https://127.0.0.1:1", "api_key": "k", "tenant": "t", "workspace": "w"}
    run_id = "run_" + "a" * 26

    async def watch() -> None:
        async with AsyncClient(**where) as client:
            async for _ in client.watch(run_id):
                pass

    with pytest.raises(Unavailable):
        asyncio.run(watch())
    with Client(**where) as client, pytest.raises(Unavailable):
        list(client.logs(run_id, follow=True))


def test_addresses() -> None:
    assert Address("https://servo.example.com").target == "servo.example.com:7400"
    assert Address("https://[::1]:99/").target == "[::1]:99"
    for wrong in ("http://a:1", "a:1", "https://", "https://a/b"):
        with pytest.raises(InvalidValue, match="is not the address of a server"):
            Address(wrong)
    with pytest.raises(InvalidValue, match="visible ASCII"):
        Address("https://a", api_key="a b")
    assert "geheim" not in repr(Address("https://a", api_key="geheim"))
