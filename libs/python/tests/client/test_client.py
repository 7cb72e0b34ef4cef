"""The client against a real mesh."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from servo import Client, InvalidValue, Run
from servo.client.errors import Conflict, InvalidRequest, NotAuthenticated, NotFound, TimedOut, Unavailable
from servo.manifest import canonical
from servo.manifest.make import make
from servo.manifest.project import Project
from servo.v1 import code_pb2, manifest_pb2, scheduler_runs_pb2, state_pb2

from ..manifest import shop
from ..manifest.test_make import ARTIFACT
from ..mesh import TENANT, Mesh
from .line import Line

pytestmark = pytest.mark.mesh


def asset(key: str, *upstream: str, do: str = "") -> manifest_pb2.AssetDefinition:
    handler = code_pb2.Handler(name="noop", config_json=do)
    dependencies = [manifest_pb2.Dependency(upstream=each) for each in upstream]
    return manifest_pb2.AssetDefinition(key=key, dependencies=dependencies, code=code_pb2.CodeRef(handler=handler))


def chain(length: int) -> manifest_pb2.Manifest:
    assets = [asset(f"n/a{at}", *([f"n/a{at - 1}"] if at else [])) for at in range(length)]
    return manifest_pb2.Manifest(format=1, assets=assets)


@pytest.fixture
def line(mesh: Mesh) -> Iterator[Line]:
    line = Line(mesh.url)
    yield line
    line.close()


def test_client_deploys_triggers_and_watches_a_run(mesh: Mesh) -> None:
    with mesh.client("first-run") as client, mesh.worker():
        deployed = client.deploy(chain(3), comment="first")
        assert sorted(change.key for change in deployed.diff.changes) == ["n/a0", "n/a1", "n/a2"]
        run = client.trigger(Run("*"), run_key="nightly")
        changes = list(client.watch(run.run_id))
        assert changes[-1].run.state == state_pb2.RUN_STATE_SUCCEEDED
        assert client.wait(run.run_id).run_id == run.run_id
        assert [task.task_key for task in client.tasks(run.run_id)] == [f"n/a{n}:materialize" for n in range(3)]
        # The same request under the same key is the same run; another request is a conflict.
        assert client.trigger(Run("*"), run_key="nightly").run_id == run.run_id
        with pytest.raises(Conflict) as raised:
            client.trigger(Run("n/a0"), run_key="nightly")
        assert raised.value.reason == "RUN_KEY_CONFLICT"
        assert [each.run_id for each in client.runs(filter="state = SUCCEEDED")] == [run.run_id]
        assert [each.definition.key for each in client.assets("1+n/a2")] == ["n/a1", "n/a2"]


def test_planner_computes_the_same_digest_as_python(mesh: Mesh) -> None:
    manifest = make(Project.of_modules([shop]), artifact=ARTIFACT, code_version="c0ffee").manifest
    archive = b"PK\x05\x06" + bytes(18)
    manifest.artifact.digest = hashlib.sha256(archive).hexdigest()
    with mesh.client("shop") as client:
        with pytest.raises(NotFound) as raised:
            client.deploy(manifest)
        assert raised.value.reason == "ARTIFACT_NOT_FOUND"
        assert client.upload(archive, "SOURCE_ARCHIVE") == manifest.artifact.digest
        assert client.download(manifest.artifact.digest) == archive
        deployed = client.deploy(manifest)
        assert deployed.deployment.manifest_digest == canonical.digest(manifest)
        assert not client.deploy(manifest, validate_only=True).diff.changes


def test_refusals_carry_reason_and_fields(mesh: Mesh) -> None:
    broken = chain(1)
    broken.assets.append(asset("n/a0", "n/ghost"))
    with mesh.client("refusals") as client:
        with pytest.raises(InvalidRequest) as raised:
            client.deploy(broken)
        assert (raised.value.reason, raised.value.code) == ("MANIFEST_INVALID", "INVALID_ARGUMENT")
        # Python reports each of these faults with the same text.
        from servo.manifest.check import check

        call_failed = [(each.field.removeprefix("manifest."), each.description) for each in raised.value.violations]
        assert sorted(call_failed) == sorted(check(broken)[1])
        with pytest.raises(NotFound) as missing:
            client.run("run_" + "a" * 26)
        assert missing.value.reason == "RUN_NOT_FOUND"
    with mesh.client("refusals", api_key="servo_wrong") as stranger, pytest.raises(NotAuthenticated):
        list(stranger.runs())


def test_refusal_names_all_faults_of_a_manifest(mesh: Mesh) -> None:
    broken = manifest_pb2.Manifest(format=1, assets=[asset(f"n/a{at}", "n/ghost") for at in range(300)])
    expected = [f"assets[{at}].dependencies[0].upstream" for at in range(300)]

    async def fields_async() -> list[str]:
        async with mesh.async_client("faults") as client:
            with pytest.raises(InvalidRequest) as raised:
                await client.deploy(broken)
            return [each.field for each in raised.value.violations]

    with mesh.client("faults") as client:
        for validate_only in (True, False):
            with pytest.raises(InvalidRequest) as raised:
                client.deploy(broken, validate_only=validate_only)
            assert [each.field for each in raised.value.violations] == expected
            assert "299 more faults" in raised.value.details.message
            assert expected[-1] in str(raised.value), "who reads it sees all of them"
    assert asyncio.run(fields_async()) == expected


def test_lists_are_fetched_page_by_page(mesh: Mesh) -> None:
    with mesh.client("pages") as client:
        client.deploy(manifest_pb2.Manifest(format=1, assets=[asset(f"n/a{at:03}") for at in range(250)]))
        assert [each.definition.key for each in client.assets()] == [f"n/a{at:03}" for at in range(250)]


def test_broken_connection_is_reopened(mesh: Mesh, line: Line) -> None:
    with mesh.client("lines", url=line.url) as client:
        client.deploy(chain(1))
        line.cut()
        line.refuse = 2
        run = client.trigger(Run("*"))
        assert line.refused == 2
        # Repeated requests have started one run only.
        assert [each.run_id for each in client.runs()] == [run.run_id]


def test_watch_resumes_after_the_last_message(mesh: Mesh, line: Line) -> None:
    with mesh.client("watching", url=line.url) as client:
        client.deploy(chain(2))
        run = client.trigger(Run("*"))
        changes = client.watch(run.run_id)
        first = next(changes)
        assert first.run.run_id == run.run_id
        line.cut()
        with mesh.worker():
            states = [change.run.state for change in changes if change.HasField("run")]
        assert states[-1] == state_pb2.RUN_STATE_SUCCEEDED


def test_unreachable_server_and_timeout_raise(mesh: Mesh, line: Line) -> None:
    line.refuse = 1_000
    with mesh.client("nowhere", url=line.url) as client:
        with pytest.raises(Unavailable, match="the server cannot be reached"):
            client.run("run_" + "a" * 26)
        request = scheduler_runs_pb2.GetRunRequest(tenant=TENANT, workspace="nowhere", run_id="run_" + "a" * 26)
        with pytest.raises((TimedOut, Unavailable)):
            client.scheduler.GetRun(request, timeout=0.001)


def test_async_client_behaves_like_the_sync_client(mesh: Mesh, line: Line) -> None:
    async def scenario() -> None:
        async with mesh.async_client("async", url=line.url) as client:
            deployed = await client.deploy(chain(2))
            assert sorted(change.key for change in deployed.diff.changes) == ["n/a0", "n/a1"]
            line.cut()
            line.refuse = 1
            run = await client.trigger(Run("*"))
            line.cut()
            assert (await client.wait(run.run_id)).state == state_pb2.RUN_STATE_SUCCEEDED
            assert [task.task_key async for task in client.tasks(run.run_id)] == [
                "n/a0:materialize",
                "n/a1:materialize",
            ]
            assert [each.run_id async for each in client.runs()] == [run.run_id]
            with pytest.raises(NotFound) as raised:
                await client.run("run_" + "a" * 26)
            assert raised.value.reason == "RUN_NOT_FOUND"
            archive = b"x" * 600_000
            assert await client.download(await client.upload(archive, "SOURCE_ARCHIVE")) == archive

    with mesh.worker():
        asyncio.run(scenario())


def test_token_is_requested_before_every_call(mesh: Mesh, tmp_path: Path) -> None:
    def client(token: Callable[[], str] | Path) -> Client:
        return Client(
            mesh.url, token=token, tenant=TENANT, workspace="tokens", ca_file=mesh.ca_file, server_name="localhost"
        )

    given = iter([mesh.api_key, "servo_expired", mesh.api_key])
    with client(lambda: next(given)) as caller:
        assert list(caller.runs()) == []
        with pytest.raises(NotAuthenticated):
            list(caller.runs())
        assert list(caller.runs()) == []
        with pytest.raises(NotAuthenticated, match="there is no token for this call"):
            list(caller.runs())
    file = tmp_path / "token"
    with client(file) as caller:
        with pytest.raises(NotAuthenticated, match="No such file"):
            list(caller.watch("run_" + "a" * 26))
        file.write_text(f"{mesh.api_key}\n")
        assert list(caller.runs()) == []
    with pytest.raises(InvalidValue, match="one of them"):
        Client(mesh.url, api_key="k", token=file, tenant=TENANT, workspace="tokens")
