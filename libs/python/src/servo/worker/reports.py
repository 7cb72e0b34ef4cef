"""Sends the reports of all attempts (starts, heartbeats, logs, outcomes) to the server over one
stream.

Batching: :meth:`Reports.send` only queues a report. While gRPC is busy with one message, further
reports accumulate and form the next message, up to 256 items or 1 MiB. So a single report is sent
at once, and a thousand at the same time need few messages.

Spooling: an outcome must survive the worker. It is first written to disk (:mod:`.spool`) by a
single thread, several outcomes with one sync, and queued for sending only then. A file is emptied
or deleted once all outcomes in it are answered. At start, outcomes that an earlier process left on
disk are queued again. If the disk fails, outcomes are sent without a copy.

Retries: every report has a number and stays in memory until the server answers that number. When
the stream breaks, all unanswered reports are sent again on the next stream, in the order in which
they were made; the server recognizes repeats. The pause between streams grows up to 2 s, but stays
below the shortest heartbeat interval, because the server would otherwise give up attempts that are
alive. A refusal with ``retry_after`` is retried after that time. A heartbeat or log batch whose
signature expired during an outage is repeated once with the finish path as proof (``renewal``). Any
other refusal is final and is passed to the attempt.

The body of an attempt does not wait for reports: a pulled attempt runs at once, and its start is
reported only if it lasts (:mod:`.attempt`). A pushed attempt runs only after the server has
answered its start, which is a unary call outside of this module (:mod:`.push`).
"""

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
# The server accepts 4 MiB.
_MESSAGE_BYTES_MAX = 1024 * 1024
_PAUSE_MIN = 0.05
_PAUSE_MAX = 2.0
# Must match the dispatcher's number of heartbeats per timeout.
_BEATS_PER_TIMEOUT = 3

TakesAnswer = Callable[[callback_pb2.CallbackResult], None]


class TakesReports(Protocol):
    def send(self, item: callback_pb2.CallbackItem, answered: TakesAnswer | None = None, renewal: str = "") -> None: ...


class _Unanswered(NamedTuple):
    item: callback_pb2.CallbackItem
    answered: TakesAnswer
    # Proves that the attempt may continue, for heartbeats and logs whose signature expired during
    # an outage.
    renewal: str


class Reports:
    def __init__(self, client: AsyncClient, tenant: str, spool: Spool) -> None:
        self._client, self._tenant, self._spool = client, tenant, spool
        # Unanswered reports by number, so in the order in which they were made.
        self._unanswered: dict[int, _Unanswered] = {}
        self._unsent: list[int] = []
        # Outcomes that are not on disk yet; they are not sent before.
        self._unspooled: list[int] = []
        self._spooled: dict[int, Path] = {}
        # The unanswered outcomes in each file of the spool.
        self._files: dict[Path, set[int]] = {}
        # One thread, so that writing and deleting never overlap.
        self._disk = ThreadPoolExecutor(1, "servo-spool")
        self._next = 1
        self._has_unsent = asyncio.Event()
        self._outcomes = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        # The number of the current stream, because the generator of a broken stream may still wait
        # and must not take the reports of the next one.
        self._stream = 0

    def send(self, item: callback_pb2.CallbackItem, answered: TakesAnswer | None = None, renewal: str = "") -> None:
        number = self._add(item, answered, renewal)
        if item.WhichOneof("call") == "finish":
            self._unspooled.append(number)
            self._outcomes.set()
        else:
            self._unsent.append(number)
            self._has_unsent.set()

    async def all_answered(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), seconds)
        return self._idle.is_set()

    async def run(self) -> None:
        """Runs until it is cancelled. Raises errors other than network failures."""
        for path, items in self._spool.left():
            self._release_to_send(path, [self._add(item) for item in items])
        try:
            await run_until_first_ends(self._spool_outcomes(), self._exchange_until_stopped())
        finally:
            self._disk.shutdown()
            # Writes outcomes that are not on disk yet. One that is written twice is sent twice,
            # which the server recognizes.
            self._write(self._answered_files(), [self._unanswered[number].item for number in self._unspooled])
            self._spool.close()

    async def _exchange_until_stopped(self) -> None:
        pause = _PAUSE_MIN
        while True:
            # Opens no stream before there is a report.
            await self._has_unsent.wait()
            began = asyncio.get_running_loop().time()
            try:
                await self._exchange()
            except grpc.aio.AioRpcError as error:
                _log.debug("the stream of reports broke: %s", error.details())
            self._unsent = sorted(self._unanswered.keys() - set(self._unspooled))
            lasted = asyncio.get_running_loop().time() - began
            pause = _PAUSE_MIN if lasted > _PAUSE_MAX else min(pause * 2, _PAUSE_MAX)
            await asyncio.sleep(min(pause, self._shortest_interval()) * random.uniform(0.5, 1.0))

    def _shortest_interval(self) -> float:
        """The shortest interval of the queued heartbeats. The server judges silence from the moment
        it is back, so a longer pause could cost an attempt that is alive.
        """
        beats = (each.item.heartbeat for each in self._unanswered.values() if each.item.HasField("heartbeat"))
        timeouts = (beat.heartbeat_timeout for beat in beats if beat.HasField("heartbeat_timeout"))
        return min((_seconds(timeout) / _BEATS_PER_TIMEOUT for timeout in timeouts), default=_PAUSE_MAX)

    async def _spool_outcomes(self) -> None:
        """Writes outcomes to disk; while some are being written, the next accumulate."""
        loop = asyncio.get_running_loop()
        while True:
            await self._outcomes.wait()
            self._outcomes.clear()
            answered = self._answered_files()
            for path in answered:
                del self._files[path]
            while self._unspooled or answered:
                numbers = self._unspooled[:_ITEMS_PER_MESSAGE_MAX]
                items = [self._unanswered[number].item for number in numbers]
                # Shielded from cancellation, because the deleted files are no longer listed
                # anywhere.
                writing = loop.run_in_executor(self._disk, self._write, answered, items)
                spooled_in: Path | None = await asyncio.shield(writing)
                del self._unspooled[: len(numbers)]
                self._release_to_send(spooled_in, numbers)
                answered = []

    def _write(self, answered: list[Path], items: list[callback_pb2.CallbackItem]) -> Path | None:
        try:
            for path in answered:
                self._spool.forget(path)
            return self._spool.keep(items) if items else None
        except OSError as error:
            # Sends outcomes without a copy on disk; if that fails too, the server notices the
            # missing heartbeats.
            _log.error("outcomes cannot be kept on this disk: %s", error)
            return None

    def _release_to_send(self, path: Path | None, numbers: list[int]) -> None:
        if path is not None:
            self._spooled.update(dict.fromkeys(numbers, path))
            self._files.setdefault(path, set()).update(numbers)
        self._unsent.extend(numbers)
        self._has_unsent.set()

    def _answered_files(self) -> list[Path]:
        return [path for path, numbers in self._files.items() if not numbers]

    def _add(self, item: callback_pb2.CallbackItem, answered: TakesAnswer | None = None, renewal: str = "") -> int:
        item.number = self._next
        self._unanswered[self._next] = _Unanswered(item, answered or (lambda _: None), renewal)
        self._next += 1
        self._idle.clear()
        return item.number

    async def _exchange(self) -> None:
        """Runs one stream until it breaks."""
        self._stream += 1
        call = self._client.callback.StreamCallbacks(self._messages(self._stream))
        try:
            async for answers in call:
                for answer in answers.results:
                    self._handle_answer(answer)
        finally:
            self._stream += 1
            call.cancel()

    async def _messages(self, stream: int) -> AsyncIterator[callback_pb2.StreamCallbacksRequest]:
        while stream == self._stream:
            while self._unsent and stream == self._stream:
                yield callback_pb2.StreamCallbacksRequest(tenant=self._tenant, items=self._next_items())
            if stream == self._stream:
                self._has_unsent.clear()
                await self._has_unsent.wait()

    def _next_items(self) -> list[callback_pb2.CallbackItem]:
        items: list[callback_pb2.CallbackItem] = []
        size = taken = 0
        for number in self._unsent[:_ITEMS_PER_MESSAGE_MAX]:
            if number in self._unanswered:
                item = self._unanswered[number].item
                size += item.ByteSize()
                if items and size > _MESSAGE_BYTES_MAX:
                    break
                items.append(item)
            taken += 1
        del self._unsent[:taken]
        return items

    def _handle_answer(self, answer: callback_pb2.CallbackResult) -> None:
        report = self._unanswered.get(answer.number)
        if report is None:
            return
        refusal = answer.refusal if answer.WhichOneof("result") == "refusal" else None
        if refusal and refusal.HasField("retry_after"):
            asyncio.get_running_loop().call_later(_seconds(refusal.retry_after), self._send_again, answer.number)
            return
        if refusal and _can_renew(report, refusal):
            _log.debug("a signature expired during an outage and is renewed")
            report.item.renewal = report.renewal
            self._send_again(answer.number)
            return
        # Removed first, because an answer whose handling fails would be repeated with every stream.
        del self._unanswered[answer.number]
        self._forget(answer.number)
        if not self._unanswered:
            self._idle.set()
            self._has_unsent.clear()
        if refusal:
            _log.warning("a report was refused: %s: %s", _named(refusal.reason), refusal.message)
        report.answered(answer)

    def _forget(self, number: int) -> None:
        path = self._spooled.pop(number, None)
        if path is None:
            return
        self._files[path].discard(number)
        if not self._files[path]:
            self._outcomes.set()

    def _send_again(self, number: int) -> None:
        if number in self._unanswered and number not in self._unsent:
            self._unsent.append(number)
            self._has_unsent.set()


def _can_renew(report: _Unanswered, refusal: callback_pb2.CallbackRefusal) -> bool:
    """Whether the report can be repeated with proof that its attempt may continue, and was not yet."""
    short_lived = report.item.WhichOneof("call") in ("heartbeat", "logs")
    expired = refusal.reason == error_pb2.ERROR_REASON_SIGNATURE_EXPIRED
    return short_lived and expired and bool(report.renewal) and not report.item.renewal


def _seconds(duration: Duration) -> float:
    return float(duration.seconds + duration.nanos / 1e9)


def _named(reason: int) -> str:
    """The name of the reason, or its number if only newer servers know it."""
    known = error_pb2.ErrorReason.DESCRIPTOR.values_by_number
    return str(known[reason].name) if reason in known else f"reason {reason}"
