"""The worker's end of a child process: one job at a time, and an end by force when it must be."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal

from . import frames
from .logs import read_lines

Stream = Literal["STDOUT", "STDERR"]
# Gets each line that user code prints.
TakesLine = Callable[[Stream, str], None]
# How long what was printed last may take to come through, when something else holds the pipes open.
_PRINTING_SECONDS = 1.0
_ENDING_SECONDS = 2.0


class ChildDied(Exception):
    """The process ended without an answer."""


class Child:
    """Its process group is its own: whatever user code started ends with it."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        lifeline: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process, self._lifeline, self._reader, self._writer = process, lifeline, reader, writer
        self._ended = asyncio.Event()
        self._take_line: TakesLine | None = None
        self._printing: list[asyncio.Task[None]] = []
        self.jobs = 0
        self.stopped = False

    @classmethod
    async def start(cls, folder: Path, memory_bytes: int = 0) -> Child:
        """``memory_bytes`` limits the process's address space; 0 does not."""
        ours, theirs = socket.socketpair()
        # Our end closes when this process dies, however it dies.
        their_lifeline, lifeline = os.pipe()
        lines = [theirs.fileno(), their_lifeline]
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "servo.worker.child_main", *map(str, lines), str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=lines,
                start_new_session=True,
            )
        os.close(their_lifeline)
        if memory_bytes:
            resource.prlimit(process.pid, resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        reader, writer = await asyncio.open_connection(sock=ours)
        child = cls(process, lifeline, reader, writer)
        await child._listen()
        return child

    async def run(self, job: dict[str, Any], take_line: TakesLine) -> dict[str, Any]:
        """The answer; raises :class:`ChildDied`. Cancelling leaves the child busy: stop it then."""
        self._take_line = take_line
        self.jobs += 1
        answer = asyncio.create_task(self._ask(job))
        ended = asyncio.create_task(self._ended.wait())
        try:
            # Waiting for both: what user code forked may hold the line open.
            await asyncio.wait([answer, ended], return_when=asyncio.FIRST_COMPLETED)
            if answer.done() and answer.exception() is None:
                return answer.result()
            await self._ended.wait()
            raise ChildDied(_how(self._process.wait()))
        finally:
            answer.cancel()
            ended.cancel()
            await asyncio.gather(answer, ended, return_exceptions=True)

    async def end(self) -> None:
        """Of one that has nothing to do: it leaves by itself when nobody can give it a job any more."""
        self._writer.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), _ENDING_SECONDS)
        await self.stop()

    async def stop(self, grace: float = 0.0) -> None:
        """TERM, and KILL after the grace, to the whole group."""
        self.stopped = True
        if grace > 0 and not self._ended.is_set():
            self._signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), grace)
        self._signal(signal.SIGKILL)
        await self._ended.wait()
        self._process.wait()
        self._writer.close()
        _, open_ends = await asyncio.wait(self._printing, timeout=_PRINTING_SECONDS)
        for each in open_ends:
            each.cancel()

    async def _listen(self) -> None:
        """A process's end shows on its file descriptor, whoever still holds its pipes."""
        loop = asyncio.get_running_loop()
        watched = os.pidfd_open(self._process.pid)

        def note_end() -> None:
            loop.remove_reader(watched)
            os.close(watched)
            os.close(self._lifeline)
            self._ended.set()

        loop.add_reader(watched, note_end)
        pipes: dict[Stream, IO[bytes] | None] = {"STDOUT": self._process.stdout, "STDERR": self._process.stderr}
        for name, pipe in pipes.items():
            source = await _reader(pipe)
            self._printing.append(asyncio.create_task(read_lines(source, partial(self._print, name))))

    async def _ask(self, job: dict[str, Any]) -> dict[str, Any]:
        self._writer.write(frames.pack(job))
        await self._writer.drain()
        count = frames.length(await self._reader.readexactly(4))
        if count > frames.FRAME_BYTES_MAX:
            raise ChildDied(f"it answered {count} bytes at once")
        answer: dict[str, Any] = json.loads(await self._reader.readexactly(count))
        return answer

    def _print(self, stream: Stream, line: str) -> None:
        if self._take_line is not None:
            self._take_line(stream, line)

    def _signal(self, number: int) -> None:
        # The group outlives its leader while anything in it lives.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


async def _reader(pipe: IO[bytes] | None) -> asyncio.StreamReader:
    assert pipe
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader


def _how(code: int) -> str:
    if code < 0:
        return f"its process was ended by signal {signal.Signals(-code).name}"
    return f"its process ended with exit code {code}"
