"""Unit tests of the worker's modules."""

from __future__ import annotations

import asyncio
import errno
import hmac
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import grpc
import pytest

from servo import AsyncClient, checks
from servo.define.checks import Check
from servo.manifest.checks import definition
from servo.manifest.entry_points import EntryPoints
from servo.v1 import callback_pb2, callback_pb2_grpc, worker_pb2
from servo.worker.checks import read, to_job
from servo.worker.config import WorkerConfig
from servo.worker.envelopes import SeenAttempts, open_envelope
from servo.worker.logs import Lines, LogBuffer
from servo.worker.outcome import failed
from servo.worker.pull import Pull
from servo.worker.redaction import Redactor
from servo.worker.reports import Reports
from servo.worker.sanitize import plain
from servo.worker.shutdown import Shutdown
from servo.worker.slots import Slots
from servo.worker.spool import Spool
from servo.worker.tasks import run_until_first_ends
from servo.worker.worker import ReportingFailed, Worker


def signed(key: bytes, envelope: bytes) -> worker_pb2.SignedEnvelope:
    return worker_pb2.SignedEnvelope(envelope=envelope, signature=hmac.digest(key, envelope, "sha256"))


def test_only_envelopes_for_this_worker_are_opened() -> None:
    content = worker_pb2.TaskEnvelope(attempt_id="A").SerializeToString()
    opened = open_envelope(b"key", signed(b"key", content))
    assert opened
    assert opened.attempt_id == "A"
    assert open_envelope(b"key", signed(b"other", content)) is None
    assert open_envelope(b"key", signed(b"key", b"\xff\xff")) is None
    forged = signed(b"key", content)
    forged.envelope = worker_pb2.TaskEnvelope(attempt_id="B").SerializeToString()
    assert open_envelope(b"key", forged) is None


def test_f06_repeated_attempt_is_recognized() -> None:
    seen = SeenAttempts()
    assert [seen.is_new(attempt) for attempt in ("a", "b", "a")] == [True, True, False]


def test_outcomes_survive_the_process(tmp_path: Path) -> None:
    item = callback_pb2.CallbackItem(presigned="/x")
    item.finish.attempt_id = "A"
    spool = Spool(tmp_path)
    path = spool.keep([item, item])
    assert spool.keep([item]) == path
    with path.open("ab") as file:
        file.write(b"\0\0\0\x09cut off")
    (tmp_path / "B.outcomes").write_bytes(b"\xff\xff")
    assert list(Spool(tmp_path).left()) == [(path, [item, item, item])]
    # The record that a crash cut off is gone.
    assert list(tmp_path.iterdir()) == [path]


def test_answered_outcomes_leave_no_files(tmp_path: Path) -> None:
    item = callback_pb2.CallbackItem(presigned="/" + "x" * 300_000)
    spool = Spool(tmp_path)
    full, current = spool.keep([item]), spool.keep([item])
    assert full != current
    spool.forget(full)
    spool.forget(current)
    assert list(tmp_path.iterdir()) == [current]
    # The file is reused and contains only the new outcomes.
    assert spool.keep([callback_pb2.CallbackItem(presigned="/y")]) == current
    assert [items for _, items in Spool(tmp_path).left()] == [[callback_pb2.CallbackItem(presigned="/y")]]
    spool.forget(current)
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_temporarily_full_disk_does_not_hide_later_outcomes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (callback_pb2.CallbackItem(presigned=name) for name in ("/first", "/second"))
    spool = Spool(tmp_path)
    path = spool.keep([first])
    write = os.write

    def half(file: int, content: bytes) -> int:
        if len(content) < 8:
            raise OSError(errno.ENOSPC, "the disk is full")
        return write(file, content[: len(content) // 2])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", half)
        with pytest.raises(OSError, match="the disk is full"):
            spool.keep([callback_pb2.CallbackItem(presigned="/lost")])
    spool.keep([second])
    assert list(Spool(tmp_path).left()) == [(path, [first, second])]


def test_file_with_a_partial_record_is_not_extended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    item = callback_pb2.CallbackItem(presigned="/x")

    def refused(*_: object) -> int:
        raise OSError(errno.EIO, "the disk is broken")

    spool = Spool(tmp_path)
    path = spool.keep([item])
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", refused)
        patched.setattr(os, "ftruncate", refused)
        with pytest.raises(OSError, match="broken"):
            spool.keep([item])
    assert spool.keep([item]) != path


@pytest.mark.parametrize(
    ("text", "sent"),
    [("a\0b", "a␀b"), ("a\ud800b\udfff", "a\ufffdb\ufffd"), ("wörd \U0001f389", "wörd \U0001f389"), ("", "")],
)
def test_texts_are_sanitized(text: str, sent: str) -> None:
    assert plain(text) == Redactor()(text) == sent
    assert failed("INPUT", text).error.message == sent


def test_last_outcomes_are_written_on_shutdown(tmp_path: Path) -> None:
    """More than one batch; some may be written twice."""
    attempts = {str(number) for number in range(600)}

    async def leave() -> None:
        client = AsyncClient("https://127.0.0.1:1", api_key="k", tenant="t", workspace="w")
        reports = Reports(client, "t", Spool(tmp_path))
        running = asyncio.create_task(reports.run())
        await asyncio.sleep(0)
        for attempt in attempts:
            reports.send(callback_pb2.CallbackItem(finish=callback_pb2.FinishAttemptRequest(attempt_id=attempt)))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(leave())
    assert {each.finish.attempt_id for _, items in Spool(tmp_path).left() for each in items} == attempts


class Refusing(callback_pb2_grpc.CallbackServiceServicer):
    """A newer server that refuses with an unknown reason."""

    async def StreamCallbacks(  # noqa: N802
        self, requests: AsyncIterator[callback_pb2.StreamCallbacksRequest], _: Any
    ) -> AsyncIterator[callback_pb2.StreamCallbacksResponse]:
        refusal = callback_pb2.CallbackRefusal(reason=cast(Any, 999), message="not on a Sunday")
        async for request in requests:
            results = [callback_pb2.CallbackResult(number=item.number, refusal=refusal) for item in request.items]
            yield callback_pb2.StreamCallbacksResponse(results=results)


def with_reports(
    folder: Path, service: callback_pb2_grpc.CallbackServiceServicer, scenario: Callable[[Reports], Awaitable[None]]
) -> None:
    async def serve() -> None:
        server = grpc.aio.server()
        callback_pb2_grpc.add_CallbackServiceServicer_to_server(service, server)
        address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        await server.start()
        async with grpc.aio.insecure_channel(address) as channel:
            client = SimpleNamespace(callback=callback_pb2_grpc.CallbackServiceStub(channel))
            reports = Reports(cast(AsyncClient, client), "t", Spool(folder))
            running = asyncio.create_task(reports.run())
            await scenario(reports)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        await server.stop(None)

    asyncio.run(serve())


def test_unknown_refusal_reason_does_not_stop_reports(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    refused: list[str] = []

    async def scenario(reports: Reports) -> None:
        for attempt in ("A", "B"):
            item = callback_pb2.CallbackItem(finish=callback_pb2.FinishAttemptRequest(attempt_id=attempt))
            reports.send(item, lambda to_job: refused.append(to_job.refusal.message))
            assert await reports.all_answered(10)

    # Other methods are never called.
    with_reports(tmp_path, Refusing(), scenario)  # type: ignore[abstract]
    assert refused == ["not on a Sunday"] * 2
    assert "a report was refused: reason 999: not on a Sunday" in caplog.text
    assert list(Spool(tmp_path).left()) == []


class Forgetful(callback_pb2_grpc.CallbackServiceServicer):
    """Every signature has expired; a call with a known renewal is accepted."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    async def StreamCallbacks(  # noqa: N802
        self, requests: AsyncIterator[callback_pb2.StreamCallbacksRequest], _: Any
    ) -> AsyncIterator[callback_pb2.StreamCallbacksResponse]:
        async for request in requests:
            yield callback_pb2.StreamCallbacksResponse(results=[self._answer(item) for item in request.items])

    def _answer(self, item: callback_pb2.CallbackItem) -> callback_pb2.CallbackResult:
        call = item.WhichOneof("call") or ""
        self.calls.append((call, item.renewal))
        if item.renewal == "/good":
            return callback_pb2.CallbackResult(number=item.number, **{call: {}})
        refusal = callback_pb2.CallbackRefusal(reason="ERROR_REASON_SIGNATURE_EXPIRED", message="too late")
        return callback_pb2.CallbackResult(number=item.number, refusal=refusal)


@pytest.mark.parametrize(
    ("call", "renewal", "answer", "renewals"),
    [
        ("heartbeat", "/good", "heartbeat", ["", "/good"]),
        ("logs", "/good", "logs", ["", "/good"]),
        ("heartbeat", "/expired", "refusal", ["", "/expired"]),
        ("heartbeat", "", "refusal", [""]),
        ("start", "/good", "refusal", [""]),
        ("finish", "/good", "refusal", [""]),
    ],
)
def test_f14_expired_report_is_repeated_with_a_renewal(
    tmp_path: Path, call: str, renewal: str, answer: str, renewals: list[str]
) -> None:
    to_job: list[str | None] = []

    async def scenario(reports: Reports) -> None:
        item = callback_pb2.CallbackItem(presigned="/old", **cast(Any, {call: {}}))
        reports.send(item, lambda result: to_job.append(result.WhichOneof("result")), renewal)
        assert await reports.all_answered(10)

    server = Forgetful()  # type: ignore[abstract]
    with_reports(tmp_path, server, scenario)
    assert to_job == [answer]
    assert server.calls == [(call, shown) for shown in renewals]


def test_reconnect_pause_stays_below_the_heartbeat_interval(tmp_path: Path) -> None:
    async def scenario() -> None:
        client = AsyncClient("https://127.0.0.1:1", api_key="k", tenant="t", workspace="w")
        reports = Reports(client, "t", Spool(tmp_path))
        beat = callback_pb2.CallbackItem(heartbeat=callback_pb2.HeartbeatRequest())
        reports.send(beat)
        assert reports._shortest_interval() == 2.0
        for seconds, interval in [(300, 100.0), (3, 1.0), (60, 1.0)]:
            beat = callback_pb2.CallbackItem()
            beat.heartbeat.heartbeat_timeout.FromSeconds(seconds)
            reports.send(beat)
            assert reports._shortest_interval() == interval

    asyncio.run(scenario())


def test_worker_that_cannot_report_ends(tmp_path: Path) -> None:
    """It must not take tasks whose outcomes it cannot report."""
    folder = tmp_path / "outcomes" / "1.outcomes"
    folder.mkdir(parents=True)

    async def scenario() -> None:
        # An unreachable server alone is not a reason to end.
        client = AsyncClient("https://127.0.0.1:1", api_key="k", tenant="t", workspace="w")
        # Does not become the reaper of the test's processes.
        await asyncio.wait_for(Worker(client, WorkerConfig("t", tmp_path))._work(), 30)

    with pytest.raises(ReportingFailed, match=r"cannot report any more .IsADirectoryError.*1\.outcomes.*stay in"):
        asyncio.run(scenario())


def test_dependent_loops_end_together() -> None:
    ended: list[str] = []

    async def lasts() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0)
            ended.append("lasts")

    async def breaks() -> None:
        await asyncio.sleep(0)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(run_until_first_ends(lasts(), breaks()))
    assert ended == ["lasts"]


def test_broken_stream_takes_no_reports_of_the_next(tmp_path: Path) -> None:
    """gRPC keeps requesting messages for a stream that failed."""

    async def scenario() -> None:
        client = AsyncClient("https://127.0.0.1:1", api_key="k", tenant="t", workspace="w")
        pull = Pull(Slots(client, WorkerConfig("t", tmp_path)))
        reports = Reports(client, "t", Spool(tmp_path / "outcomes"))
        senders: list[tuple[Any, Callable[[], None]]] = [
            (pull, pull._enqueue),
            (reports, lambda: reports.send(callback_pb2.CallbackItem())),
        ]
        for sender, send in senders:
            sender._stream = 1
            stale = asyncio.ensure_future(anext(sender._messages(1)))
            await asyncio.sleep(0)
            sender._stream = 2
            current = asyncio.ensure_future(anext(sender._messages(2)))
            await asyncio.sleep(0)
            send()
            await asyncio.wait([stale, current])
            assert isinstance(stale.exception(), StopAsyncIteration)
            assert current.exception() is None

    asyncio.run(scenario())


@pytest.mark.parametrize(("grace", "finish", "end"), [(40.0, 25.0, 30.0), (4.0, 2.0, 3.0), (0.0, 0.0, 0.0)])
def test_shutdown_reserves_time_for_killing_and_reporting(grace: float, finish: float, end: float) -> None:
    async def scenario() -> None:
        shutdown = Shutdown(grace, kill_grace=5.0)
        shutdown.begin()
        ends = shutdown._ends
        shutdown.begin()
        assert shutdown._ends == ends
        assert shutdown.seconds_to_finish <= finish
        assert shutdown.seconds_to_kill <= end
        assert shutdown.kill_seconds == min(5.0, grace / 4)

    asyncio.run(scenario())


def lines(*pieces: bytes) -> list[str]:
    found = list[str]()
    source = Lines(found.append)
    for piece in pieces:
        source.feed(piece)
    source.end()
    return found


def test_lines_are_split_truncated_and_decoded() -> None:
    assert lines(b"a\nb", b"c\r\n", b"\n", b"end") == ["a", "bc", "", "end"]
    assert lines(b"\xff\xfe\n") == ["\ufffd\ufffd"]
    assert [len(line) for line in lines(b"x" * 100_000, b"y" * 100_000, b"\nshort\n")] == [32_768, 5]


def holds(value: object) -> bool:
    return bool(value)


@pytest.mark.parametrize(
    "check",
    [
        checks.row_count(at_least=0, at_most=7),
        checks.row_count(share_of_previous=0.5),
        checks.not_null("a", "b").on(severity="critical", phase="pre", timeout="90s"),
        checks.unique("a"),
        checks.max_age("at", "36h"),
        checks.schema({"id": "int64", "note": "string?"}, allow_extra=True),
        checks.sql("SELECT 1"),
        Check("holds", checks.Code(holds), "warning"),
    ],
)
def test_check_round_trips_to_the_child(check: Check) -> None:
    sent = to_job(definition(check, EntryPoints(importable=True)))
    found = read(json.loads(json.dumps(sent)))
    assert (found.name, found.spec) == (check.name, check.spec)
    assert (found.severity, found.phase) == (check.severity or "error", check.phase or "post")
    assert found.timeout == (None if check.timeout is None else timedelta(seconds=90))


def test_log_batches_are_small_enough_for_the_server() -> None:
    kept = LogBuffer()
    for number in range(100):
        kept.add(callback_pb2.LogLine(text=f"{number} " + "x" * 16_000))
    kept.drop()
    batches = []
    while kept:
        batches.append(kept.take())
    assert [line.text.split()[0] for batch in batches for line in batch.lines] == [str(each) for each in range(100)]
    assert max(batch.ByteSize() for batch in batches) < 1024 * 1024
    assert [batch.dropped_lines for batch in batches] == [1] + [0] * (len(batches) - 1)


def test_dropped_lines_are_counted() -> None:
    kept = LogBuffer()
    while not kept.full:
        kept.add(callback_pb2.LogLine(text="x" * 16_000))
    kept.drop()
    kept.drop()
    assert kept.take().dropped_lines == 2
    assert not kept.full
