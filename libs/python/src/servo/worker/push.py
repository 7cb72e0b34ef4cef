"""Envelopes over HTTP, from a queue. A pushed envelope is an invitation: the worker begins the attempt
only if the server accepts its start, because the queue may deliver an envelope more than once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from http import HTTPStatus

from google.protobuf.message import DecodeError

from servo.client.errors import CallFailed, Exhausted, TimedOut, Unavailable
from servo.v1 import worker_pb2

from .attempt import Attempt
from .config import PushConfig
from .pull import FINAL
from .slots import Acceptance, Slots

_log = logging.getLogger("servo.worker")
# An envelope and its encoding.
_BODY_BYTES_MAX = 128 * 1024
_HEAD_BYTES_MAX = 16 * 1024
_REQUEST_SECONDS = 60.0
_PAUSE = 0.5
# How long the start is requested; after that the server has given the attempt to another worker.
_START_SECONDS = 20.0
_PASSING = (Unavailable, Exhausted, TimedOut)
_ANSWERS = {
    Acceptance.STARTED: HTTPStatus.ACCEPTED,
    Acceptance.KNOWN: HTTPStatus.ACCEPTED,
    Acceptance.FORGED: HTTPStatus.UNAUTHORIZED,
    Acceptance.FULL: HTTPStatus.TOO_MANY_REQUESTS,
}


class _Refused(Exception):
    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status)
        self.status = status


class Push:
    def __init__(self, slots: Slots, config: PushConfig) -> None:
        self._slots, self._config = slots, config
        self._registered = False
        self._listens = asyncio.Event()
        self.port = 0

    async def listening(self) -> int:
        """The port, once it accepts connections."""
        await self._listens.wait()
        return self.port

    async def serve(self) -> None:
        """Runs until the worker shuts down. Raises if the server refuses it for good, or the port is in use."""
        config = self._config
        server = await asyncio.start_server(
            self._handle_connection, config.host, config.port, ssl=_tls(config), limit=_HEAD_BYTES_MAX
        )
        self.port = server.sockets[0].getsockname()[1]
        self._listens.set()
        staying: asyncio.Task[None] | None = None
        try:
            while not self._slots.shutdown.begun and not self._registered:
                staying = await self._register()
            await self._slots.shutdown.wait()
            # Cancellations arrive with heartbeats; no new envelopes are accepted.
            await self._slots.finish_running()
        finally:
            if staying:
                staying.cancel()
            server.close()

    async def _register(self) -> asyncio.Task[None] | None:
        try:
            registered = await self._slots.register()
        except FINAL:
            raise
        except CallFailed as error:
            _log.info("not registered: %s", error)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._slots.shutdown.wait(), _PAUSE)
            return None
        self._registered = True
        return asyncio.create_task(self._slots.stay_registered(registered))

    async def _handle_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: requests in sequence, each answered before its attempt has run."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError, ssl.SSLError):
            keep_alive = True
            while keep_alive:
                try:
                    async with asyncio.timeout(_REQUEST_SECONDS):
                        body, keep_alive = await _request(reader)
                    status = self._take(body)
                except _Refused as refused:
                    status, keep_alive = refused.status, False
                writer.write(_answer(status, keep_alive))
                await writer.drain()
        writer.close()

    def _take(self, body: bytes) -> HTTPStatus:
        if not self._registered or self._slots.shutdown.begun:
            return HTTPStatus.SERVICE_UNAVAILABLE
        try:
            signed = worker_pb2.SignedEnvelope.FromString(body)
        except DecodeError:
            return HTTPStatus.BAD_REQUEST
        return _ANSWERS[self._slots.accept(signed, self._run_if_allowed, only_if_free=True)]

    async def _run_if_allowed(self, attempt: Attempt) -> None:
        if await self._may_start(attempt):
            await attempt.run()

    async def _may_start(self, attempt: Attempt) -> bool:
        """Only the first process that asks may start the attempt."""
        metadata = (("servo-presigned", attempt.envelope.callbacks.start),)
        try:
            async with asyncio.timeout(_START_SECONDS):
                while True:
                    try:
                        callback = self._slots.client.callback
                        answer = await callback.StartAttempt(attempt.reports.start_request(), metadata=metadata)
                        attempt.reports.renew(answer.renewed)
                        return True
                    except _PASSING:
                        await asyncio.sleep(_PAUSE)
        except TimeoutError:
            _log.info("attempt %s: the server did not answer whether it may start", attempt.envelope.attempt_id)
        except CallFailed as error:
            _log.info("attempt %s is not for us to start: %s", attempt.envelope.attempt_id, error)
        return False


async def _request(reader: asyncio.StreamReader) -> tuple[bytes, bool]:
    """The body of a POST, and whether the connection is kept open. Implements the part of HTTP that queues use."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.LimitOverrunError:
        raise _Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE) from None
    words = head[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _Refused(HTTPStatus.BAD_REQUEST)
    pairs = (line.partition(":") for line in head[1:] if line)
    headers = {name.strip().lower(): value.strip().lower() for name, _, value in pairs}
    if words[0] != "POST":
        raise _Refused(HTTPStatus.METHOD_NOT_ALLOWED)
    length = headers.get("content-length", "")
    if "transfer-encoding" in headers or not length.isdecimal():
        raise _Refused(HTTPStatus.LENGTH_REQUIRED)
    if int(length) > _BODY_BYTES_MAX:
        raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    body = await reader.readexactly(int(length))
    return body, words[2] == "HTTP/1.1" and headers.get("connection") != "close"


def _answer(status: HTTPStatus, keep_alive: bool) -> bytes:
    connection = "keep-alive" if keep_alive else "close"
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Length: 0\r\nConnection: {connection}\r\n\r\n"
    return head.encode()


def _tls(config: PushConfig) -> ssl.SSLContext | None:
    if not config.certificate:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(config.certificate, config.key)
    return context
