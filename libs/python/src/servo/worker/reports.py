"""Reports, gathered: while one message is under way the next fills. What is not answered is sent again on the next
stream, in the order it was made."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, Protocol

import grpc
from google.protobuf.duration_pb2 import Duration

from servo.client.aio import AsyncClient
from servo.v1 import callback_pb2, error_pb2

from .spool import Spool
from .tasks import run_until_first_ends

_log = logging.getLogger("servo.worker")
_ITEMS_PER_MESSAGE_MAX = 256
# The server takes 4 MiB.
_MESSAGE_BYTES_MAX = 1024 * 1024
_PAUSE_MIN = 0.05
_PAUSE_MAX = 2.0
# As the dispatcher counts them.
_BEATS_PER_TIMEOUT = 3

TakesAnswer = Callable[[callback_pb2.CallbackResult], None]


class TakesReports(Protocol):
    def send(self, item: callback_pb2.CallbackItem, answered: TakesAnswer | None = None, renewal: str = "") -> None: ...


class _Open(NamedTuple):
    item: callback_pb2.CallbackItem
    answered: TakesAnswer
    # What lets in a beat or logs whose own signature an outage outlived.
    renewal: str


class Reports:
    def __init__(self, client: AsyncClient, tenant: str, spool: Spool) -> None:
        self._client, self._tenant, self._spool = client, tenant, spool
        # By number, hence in the order they were made.
        self._open: dict[int, _Open] = {}
        self._unsent: list[int] = []
        # Outcomes go to the disk before they go anywhere else.
        self._unkept: list[int] = []
        self._kept: dict[int, Path] = {}
        # By file of the spool: which of its outcomes are not answered.
        self._files: dict[Path, set[int]] = {}
        # One thread: what is written and what is forgotten do not meet.
        self._disk = ThreadPoolExecutor(1, "servo-spool")
        self._next = 1
        self._news = asyncio.Event()
        self._outcomes = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        # Which stream may speak: one that broke may still wait for news, and must not take what is the next one's.
        self._stream = 0

    def send(self, item: callback_pb2.CallbackItem, answered: TakesAnswer | None = None, renewal: str = "") -> None:
        number = self._add(item, answered, renewal)
        if item.WhichOneof("call") == "finish":
            self._unkept.append(number)
            self._outcomes.set()
        else:
            self._unsent.append(number)
            self._news.set()

    async def all_answered(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), seconds)
        return self._idle.is_set()

    async def run(self) -> None:
        """Until it is cancelled. Raises what is no fault of the network."""
        for path, items in self._spool.left():
            self._is_durable(path, [self._add(item) for item in items])
        try:
            await run_until_first_ends(self._keep_outcomes(), self._exchange_until_stopped())
        finally:
            self._disk.shutdown()
            # Nothing is lost that nobody had the time to write; what is written twice is sent twice, which is once.
            self._write(self._answered_files(), [self._open[number].item for number in self._unkept])
            self._spool.close()

    async def _exchange_until_stopped(self) -> None:
        pause = _PAUSE_MIN
        while True:
            # No stream before there is something to say.
            await self._news.wait()
            began = asyncio.get_running_loop().time()
            try:
                await self._exchange()
            except grpc.aio.AioRpcError as error:
                _log.debug("the stream of reports broke: %s", error.details())
            self._unsent = sorted(self._open.keys() - set(self._unkept))
            lasted = asyncio.get_running_loop().time() - began
            pause = _PAUSE_MIN if lasted > _PAUSE_MAX else min(pause * 2, _PAUSE_MAX)
            await asyncio.sleep(min(pause, self._shortest_interval()) * random.uniform(0.5, 1.0))

    def _shortest_interval(self) -> float:
        """Of the beats that wait. Silence is judged from when the server is back: who then waits longer than from one
        beat to the next may be given up although it lives."""
        beats = (each.item.heartbeat for each in self._open.values() if each.item.HasField("heartbeat"))
        timeouts = (beat.heartbeat_timeout for beat in beats if beat.HasField("heartbeat_timeout"))
        return min((_seconds(timeout) / _BEATS_PER_TIMEOUT for timeout in timeouts), default=_PAUSE_MAX)

    async def _keep_outcomes(self) -> None:
        """While some are being written the next gather."""
        loop = asyncio.get_running_loop()
        while True:
            await self._outcomes.wait()
            self._outcomes.clear()
            answered = self._answered_files()
            for path in answered:
                del self._files[path]
            while self._unkept or answered:
                numbers = self._unkept[:_ITEMS_PER_MESSAGE_MAX]
                items = [self._open[number].item for number in numbers]
                # Files that are forgotten here stand nowhere any more, so this goes on when we are cancelled.
                writing = loop.run_in_executor(self._disk, self._write, answered, items)
                kept_in: Path | None = await asyncio.shield(writing)
                del self._unkept[: len(numbers)]
                self._is_durable(kept_in, numbers)
                answered = []

    def _write(self, answered: list[Path], items: list[callback_pb2.CallbackItem]) -> Path | None:
        try:
            for path in answered:
                self._spool.forget(path)
            return self._spool.keep(items) if items else None
        except OSError as error:
            # Better sent without a copy than not at all; without both the server misses the heartbeat.
            _log.error("outcomes cannot be kept on this disk: %s", error)
            return None

    def _is_durable(self, path: Path | None, numbers: list[int]) -> None:
        if path is not None:
            self._kept.update(dict.fromkeys(numbers, path))
            self._files.setdefault(path, set()).update(numbers)
        self._unsent.extend(numbers)
        self._news.set()

    def _answered_files(self) -> list[Path]:
        return [path for path, numbers in self._files.items() if not numbers]

    def _add(self, item: callback_pb2.CallbackItem, answered: TakesAnswer | None = None, renewal: str = "") -> int:
        item.number = self._next
        self._open[self._next] = _Open(item, answered or (lambda _: None), renewal)
        self._next += 1
        self._idle.clear()
        return item.number

    async def _exchange(self) -> None:
        """One stream, until it breaks."""
        self._stream += 1
        call = self._client.callback.StreamCallbacks(self._messages(self._stream))
        try:
            async for answers in call:
                for answer in answers.results:
                    self._take(answer)
        finally:
            self._stream += 1
            call.cancel()

    async def _messages(self, stream: int) -> AsyncIterator[callback_pb2.StreamCallbacksRequest]:
        while stream == self._stream:
            while self._unsent and stream == self._stream:
                yield callback_pb2.StreamCallbacksRequest(tenant=self._tenant, items=self._next_items())
            if stream == self._stream:
                self._news.clear()
                await self._news.wait()

    def _next_items(self) -> list[callback_pb2.CallbackItem]:
        items: list[callback_pb2.CallbackItem] = []
        size = taken = 0
        for number in self._unsent[:_ITEMS_PER_MESSAGE_MAX]:
            if number in self._open:
                item = self._open[number].item
                size += item.ByteSize()
                if items and size > _MESSAGE_BYTES_MAX:
                    break
                items.append(item)
            taken += 1
        del self._unsent[:taken]
        return items

    def _take(self, answer: callback_pb2.CallbackResult) -> None:
        report = self._open.get(answer.number)
        if report is None:
            return
        refusal = answer.refusal if answer.WhichOneof("result") == "refusal" else None
        if refusal and refusal.HasField("retry_after"):
            asyncio.get_running_loop().call_later(_seconds(refusal.retry_after), self._send_again, answer.number)
            return
        if refusal and _may_return(report, refusal):
            _log.debug("a signature expired meanwhile and is renewed")
            report.item.renewal = report.renewal
            self._send_again(answer.number)
            return
        # First of all: an answer that somebody chokes on would come again with every stream.
        del self._open[answer.number]
        self._forget(answer.number)
        if not self._open:
            self._idle.set()
            self._news.clear()
        if refusal:
            _log.warning("a report was refused: %s: %s", _named(refusal.reason), refusal.message)
        report.answered(answer)

    def _forget(self, number: int) -> None:
        path = self._kept.pop(number, None)
        if path is None:
            return
        self._files[path].discard(number)
        if not self._files[path]:
            self._outcomes.set()

    def _send_again(self, number: int) -> None:
        if number in self._open and number not in self._unsent:
            self._unsent.append(number)
            self._news.set()


def _may_return(report: _Open, refusal: callback_pb2.CallbackRefusal) -> bool:
    """Whether its attempt can prove that it may go on; it has not tried yet."""
    short_lived = report.item.WhichOneof("call") in ("heartbeat", "logs")
    expired = refusal.reason == error_pb2.ERROR_REASON_SIGNATURE_EXPIRED
    return short_lived and expired and bool(report.renewal) and not report.item.renewal


def _seconds(duration: Duration) -> float:
    return float(duration.seconds + duration.nanos / 1e9)


def _named(reason: int) -> str:
    """By its number when it is one that only newer servers know."""
    known = error_pb2.ErrorReason.DESCRIPTOR.values_by_number
    return str(known[reason].name) if reason in known else f"reason {reason}"
