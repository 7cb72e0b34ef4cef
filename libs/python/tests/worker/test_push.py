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
from servo.v1 import callback_pb2, dispatcher_pb2, scheduler_runs_pb2, state_pb2, worker_pb2
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
        self.start_requests: list[callback_pb2.StartAttemptRequest] = []
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
        self.start_requests.append(request)
        self.presigned.append(dict(metadata)["servo-presigned"])
        if self.away:
            self.away -= 1
            raise Unavailable(Details("UNAVAILABLE", "the server is away"))
        await self.may_answer.wait()
        raise Conflict(Details("FAILED_PRECONDITION", "another process was first"))


class PushClient:
    def __init__(self, server: Server, push: Push, slots: Slots) -> None:
        self.server, self.push, self.slots = server, push, slots
        self.tls: ssl.SSLContext | None = None

    async def send(self, *raw: bytes) -> list[int]:
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
        (status,) = await self.send(posted(body))
        return status


def posted(body: bytes) -> bytes:
    return b"POST /push HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def envelope(attempt: str, key: bytes = KEY) -> bytes:
    message = worker_pb2.TaskEnvelope(attempt_id=attempt, mode=state_pb2.DISPATCH_MODE_PUSH)
    message.callbacks.start = f"/{attempt}/start"
    body = message.SerializeToString()
    signed = worker_pb2.SignedEnvelope(envelope=body, signature=hmac.digest(key, body, "sha256"))
    return signed.SerializeToString()


def with_push_client(
    tmp_path: Path, use: Callable[[PushClient], Awaitable[None]], *, registered: bool = True, certificate: str = ""
) -> None:
    async def scenario() -> None:
        server = Server()
        client = SimpleNamespace(
            dispatcher=SimpleNamespace(RegisterWorker=server.register),
            callback=SimpleNamespace(StartAttempt=server.start),
        )
        push = PushConfig("http://x", "127.0.0.1", 0, certificate, certificate.replace(".crt", ".key"))
        slots = Slots(cast(AsyncClient, client), WorkerConfig("t", tmp_path, slots=2, push=push))
        push_client = PushClient(server, Push(slots, push), slots)
        if registered:
            server.registers.set()
        serving = asyncio.create_task(push_client.push.serve())
        await push_client.push.listening()
        await asyncio.wait_for(use(push_client), 30)
        server.registers.set()
        server.may_answer.set()
        slots.shutdown.begin()
        await asyncio.wait_for(serving, 30)

    asyncio.run(scenario())


def test_f06_repeated_envelope_is_accepted_once(tmp_path: Path) -> None:
    async def use(push_client: PushClient) -> None:
        twice = [posted(envelope("A")), posted(envelope("A"))]
        assert await push_client.send(*twice) == [202, 202]
        assert await push_client.post(envelope("A")) == 202
        assert list(push_client.slots.running) == ["A"]
        await wait_until_async(lambda: push_client.server.presigned == ["/A/start"], "the worker asked to start A")
        assert push_client.server.start_requests[0].mode == state_pb2.DISPATCH_MODE_PUSH
        assert await push_client.post(envelope("B")) == 202
        # It has two slots; the queue will push again.
        assert await push_client.post(envelope("C")) == 429
        push_client.server.may_answer.set()
        # Another worker got the attempts: nothing runs, and the slots are free.
        await wait_until_async(lambda: not push_client.slots.running, "no attempt runs")
        assert await push_client.post(envelope("C")) == 202

    with_push_client(tmp_path, use)


def test_f07_push_is_answered_before_the_attempt_runs(tmp_path: Path) -> None:
    async def use(push_client: PushClient) -> None:
        push_client.server.away = 1
        assert await push_client.post(envelope("A")) == 202
        # The request is repeated while the server does not answer.
        await wait_until_async(lambda: len(push_client.server.start_requests) == 2, "the worker asked again")

    with_push_client(tmp_path, use)


@pytest.mark.parametrize(
    ("raw_request", "status"),
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
def test_invalid_pushes_are_refused(tmp_path: Path, raw_request: bytes, status: int) -> None:
    async def use(push_client: PushClient) -> None:
        assert await push_client.send(raw_request) == [status]
        assert not push_client.slots.running

    with_push_client(tmp_path, use)


def test_unregistered_and_draining_worker_refuses_pushes(tmp_path: Path) -> None:
    async def before(push_client: PushClient) -> None:
        assert await push_client.post(envelope("A")) == 503

    async def after(push_client: PushClient) -> None:
        assert await push_client.post(envelope("A")) == 202
        push_client.slots.shutdown.begin()
        # It still answers while attempts finish.
        assert await push_client.post(envelope("B")) == 503

    with_push_client(tmp_path, before, registered=False)
    with_push_client(tmp_path, after)


def test_settings_come_from_the_environment() -> None:
    assert PushConfig.of({}) is None
    config = PushConfig.of({"SERVO_PUSH_URL": "http://w/x", "SERVO_PUSH_LISTEN": "[::1]:81"})
    assert config == PushConfig("http://w/x", "::1", 81)
    with pytest.raises(InvalidValue, match="write host:port"):
        PushConfig.of({"SERVO_PUSH_URL": "http://w/x", "SERVO_PUSH_LISTEN": "here"})
    with pytest.raises(InvalidValue, match="set SERVO_PUSH_CERTIFICATE"):
        PushConfig.of({"SERVO_PUSH_URL": "https://w/x"})


@pytest.mark.mesh
def test_push_listener_supports_tls(tmp_path: Path, mesh: Mesh) -> None:
    async def use(push_client: PushClient) -> None:
        push_client.tls = ssl.create_default_context(cafile=str(mesh.ca_file))
        push_client.tls.check_hostname = False
        assert await push_client.post(envelope("A")) == 202
        push_client.tls = None
        with pytest.raises(asyncio.IncompleteReadError):
            await push_client.post(envelope("B"))

    with_push_client(tmp_path, use, certificate=str(mesh.folder / "tls" / "gateway.crt"))


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
            request = scheduler_runs_pb2.GetTaskRequest(
                tenant=TENANT, workspace="push-ok", run_id=run.run_id, task_id=task.task_id
            )
            # Only pushed attempts are in state DISPATCHED before they run.
            states = [change.to_state for change in client.scheduler.GetTask(request).history]
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
