"""Envelopes that are pushed over HTTP: accepted at once, run after the server agrees, run once."""

from __future__ import annotations

import asyncio
import hmac
import signal
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from servo import AsyncClient, Run
from servo.build.build import Built, build
from servo.client.errors import Conflict, Details, Unavailable
from servo.errors import InvalidValue
from servo.v1 import callback_pb2, dispatcher_pb2, event_execution_pb2, scheduler_runs_pb2, state_pb2, worker_pb2
from servo.worker.config import PushConfig, WorkerConfig
from servo.worker.push import Push
from servo.worker.slots import Slots

from ..build.test_build import project
from ..mesh import TENANT, Mesh
from ..waiting import wait_until_async
from .test_worker import CODE, deployed, until_written, working

KEY = b"the worker's"


class Server:
    """A fake server: registers every worker, and accepts, refuses or ignores starts."""

    def __init__(self) -> None:
        self.asked: list[callback_pb2.StartAttemptRequest] = []
        self.presigned: list[str] = []
        self.may_answer = asyncio.Event()
        self.registers = asyncio.Event()
        self.away = 0

    async def register(self, _: dispatcher_pb2.RegisterWorkerRequest) -> dispatcher_pb2.RegisterWorkerResponse:
        await self.registers.wait()
        return dispatcher_pb2.RegisterWorkerResponse(envelope_key=KEY)

    async def start(
        self, request: callback_pb2.StartAttemptRequest, metadata: tuple[tuple[str, str], ...]
    ) -> callback_pb2.StartAttemptResponse:
        self.asked.append(request)
        self.presigned.append(dict(metadata)["servo-presigned"])
        if self.away:
            self.away -= 1
            raise Unavailable(Details("UNAVAILABLE", "nobody is there"))
        await self.may_answer.wait()
        raise Conflict(Details("FAILED_PRECONDITION", "another process was first"))


class Door:
    def __init__(self, server: Server, push: Push, slots: Slots) -> None:
        self.server, self.push, self.slots = server, push, slots
        self.tls: ssl.SSLContext | None = None

    async def say(self, *raw: bytes) -> list[int]:
        """Sends requests over one connection; returns the status of each response."""
        reader, writer = await asyncio.open_connection("127.0.0.1", await self.push.listening(), ssl=self.tls)
        found = []
        for each in raw:
            writer.write(each)
            head = await reader.readuntil(b"\r\n\r\n")
            found.append(int(head.split()[1]))
        writer.close()
        return found

    async def post(self, body: bytes) -> int:
        (status,) = await self.say(posted(body))
        return status


def posted(body: bytes) -> bytes:
    return b"POST /push HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def envelope(attempt: str, key: bytes = KEY) -> bytes:
    told = worker_pb2.TaskEnvelope(attempt_id=attempt, mode=event_execution_pb2.DISPATCH_MODE_PUSH)
    told.callbacks.start = f"/{attempt}/start"
    body = told.SerializeToString()
    signed = worker_pb2.SignedEnvelope(envelope=body, signature=hmac.digest(key, body, "sha256"))
    return signed.SerializeToString()


def with_door(
    tmp_path: Path, use: Callable[[Door], Awaitable[None]], *, registered: bool = True, certificate: str = ""
) -> None:
    async def story() -> None:
        server = Server()
        client = SimpleNamespace(
            dispatcher=SimpleNamespace(RegisterWorker=server.register),
            callback=SimpleNamespace(StartAttempt=server.start),
        )
        push = PushConfig("http://x", "127.0.0.1", 0, certificate, certificate.replace(".crt", ".key"))
        slots = Slots(cast(AsyncClient, client), WorkerConfig("t", tmp_path, slots=2, push=push))
        door = Door(server, Push(slots, push), slots)
        if registered:
            server.registers.set()
        serving = asyncio.create_task(door.push.serve())
        await door.push.listening()
        await asyncio.wait_for(use(door), 30)
        server.registers.set()
        server.may_answer.set()
        slots.shutdown.begin()
        await asyncio.wait_for(serving, 30)

    asyncio.run(story())


def test_f06_repeated_envelope_is_accepted_once(tmp_path: Path) -> None:
    async def use(door: Door) -> None:
        twice = [posted(envelope("A")), posted(envelope("A"))]
        assert await door.say(*twice) == [202, 202]
        assert await door.post(envelope("A")) == 202
        assert list(door.slots.running) == ["A"]
        await wait_until_async(lambda: door.server.presigned == ["/A/start"], "the worker asked to start A")
        assert door.server.asked[0].mode == event_execution_pb2.DISPATCH_MODE_PUSH
        assert await door.post(envelope("B")) == 202
        # It has two slots; the queue will push again.
        assert await door.post(envelope("C")) == 429
        door.server.may_answer.set()
        # Another worker got the attempts: nothing runs, and the slots are free.
        await wait_until_async(lambda: not door.slots.running, "no attempt runs")
        assert await door.post(envelope("C")) == 202

    with_door(tmp_path, use)


def test_f07_push_is_answered_before_the_attempt_runs(tmp_path: Path) -> None:
    async def use(door: Door) -> None:
        door.server.away = 1
        assert await door.post(envelope("A")) == 202
        # The request is repeated while the server does not answer.
        await wait_until_async(lambda: len(door.server.asked) == 2, "the worker asked again")

    with_door(tmp_path, use)


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"GET /push HTTP/1.1\r\n\r\n", 405),
        (b"POST /push HTTP/1.1\r\n\r\n", 411),
        (b"POST /push HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"POST /push HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 411),
        (b"POST /push HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n", 413),
        (b"POST /push HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n", 431),
        (b"hello\r\n\r\n", 400),
        (posted(b"\xff\xff"), 400),
        (posted(b""), 401),
        (posted(envelope("A", b"another's")), 401),
    ],
)
def test_invalid_pushes_are_refused(tmp_path: Path, said: bytes, status: int) -> None:
    async def use(door: Door) -> None:
        assert await door.say(said) == [status]
        assert not door.slots.running

    with_door(tmp_path, use)


def test_unregistered_and_draining_worker_refuses_pushes(tmp_path: Path) -> None:
    async def before(door: Door) -> None:
        assert await door.post(envelope("A")) == 503

    async def after(door: Door) -> None:
        assert await door.post(envelope("A")) == 202
        door.slots.shutdown.begin()
        # It still answers while attempts finish.
        assert await door.post(envelope("B")) == 503

    with_door(tmp_path, before, registered=False)
    with_door(tmp_path, after)


def test_settings_come_from_the_environment() -> None:
    assert PushConfig.of({}) is None
    told = PushConfig.of({"SERVO_PUSH_URL": "http://w/x", "SERVO_PUSH_LISTEN": "[::1]:81"})
    assert told == PushConfig("http://w/x", "::1", 81)
    with pytest.raises(InvalidValue, match="write host:port"):
        PushConfig.of({"SERVO_PUSH_URL": "http://w/x", "SERVO_PUSH_LISTEN": "here"})
    with pytest.raises(InvalidValue, match="set SERVO_PUSH_CERTIFICATE"):
        PushConfig.of({"SERVO_PUSH_URL": "https://w/x"})


@pytest.mark.mesh
def test_push_listener_supports_tls(tmp_path: Path, mesh: Mesh) -> None:
    async def use(door: Door) -> None:
        door.tls = ssl.create_default_context(cafile=str(mesh.ca_file))
        door.tls.check_hostname = False
        assert await door.post(envelope("A")) == 202
        door.tls = None
        with pytest.raises(asyncio.IncompleteReadError):
            await door.post(envelope("B"))

    with_door(tmp_path, use, certificate=str(mesh.folder / "tls" / "gateway.crt"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EFFECTS", str(folder / "effects"))
        return build(project(folder, {"workshop.py": CODE.replace("\\\\n", "\\n")}))


@pytest.fixture
def pushed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that are started listen on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("SERVO_PUSH_URL", f"http://127.0.0.1:{port}/push")
    monkeypatch.setenv("SERVO_PUSH_LISTEN", f"127.0.0.1:{port}")


@pytest.mark.mesh
@pytest.mark.usefixtures("pushed")
def test_project_runs_in_push_mode(mesh: Mesh, built: Built, tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    with mesh.client("push-ok") as client, working(mesh, "push-ok", effects) as process:
        run = deployed(client, built).trigger(Run("ok.*"))
        assert client.wait(run.run_id).state == state_pb2.RUN_STATE_SUCCEEDED
        assert effects.read_text().splitlines() == [
            "ok/files 1 1",
            *["ok/parsed 1 1"] * 2,
            "ok/flaky 1 1",
            "ok/flaky 2 2",
        ]
        # A mapped task has no attempt of its own.
        for task in (task for task in client.tasks(run.run_id) if task.attempt):
            asked = scheduler_runs_pb2.GetTaskRequest(
                tenant=TENANT, workspace="push-ok", run_id=run.run_id, task_id=task.task_id
            )
            # Only pushed attempts are in state DISPATCHED before they run.
            states = [change.to_state for change in client.scheduler.GetTask(asked).history]
            assert states[-1] == state_pb2.TASK_STATE_SUCCEEDED
            assert state_pb2.TASK_STATE_DISPATCHED in states
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 0


@pytest.mark.mesh
@pytest.mark.usefixtures("pushed")
def test_f17_cancel_reaches_a_pushed_attempt(quick_mesh: Mesh, built: Built, tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    with quick_mesh.client("push-cancel") as client, working(quick_mesh, "push-cancel", effects):
        run = deployed(client, built).trigger(Run("slow.*"))
        until_written(effects)
        # There is no stream, so the worker learns it from a heartbeat response.
        client.cancel(run.run_id)
        assert client.wait(run.run_id).state == state_pb2.RUN_STATE_CANCELLED
