"""The worker's side of a child process, which runs one job at a time and can be killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Set
from functools import partial
from pathlib import Path
from typing import Any, Literal

from . import frames, orphans, process_tree
from .logs import Lines

Stream = Literal["STDOUT", "STDERR"]
# Called with each line that user code prints.
TakesLine = Callable[[Stream, str], None]
Answer = dict[str, Any]
# Called with each record of user code's logger.
TakesRecord = Callable[[dict[str, Any]], None]
# Variables that only the worker gets.
_PRIVATE = frozenset({"SERVO_API_KEY"})
_READ_BYTES = 64 * 1024
# Enough to drain a full pipe.
_READS_AT_THE_END_MAX = 4
_ENDING_SECONDS = 2.0
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class ChildDied(Exception):
    """The process ended without an answer."""


class Child:
    """A child process with a process group of its own, so that everything user code started ends with it."""

    def __init__(self, process: subprocess.Popen[bytes], lifeline: int, watched: int) -> None:
        """``watched`` is the pidfd of the process."""
        self._process, self._lifeline, self._watched = process, lifeline, watched
        orphans.ours.add(process.pid)
        self._loop = asyncio.get_running_loop()
        self._control: asyncio.Transport | None = None
        self._ended = asyncio.Event()
        self._answer: asyncio.Future[Answer] | None = None
        self._take_line: TakesLine | None = None
        self._take_record: TakesRecord | None = None
        self._printed: dict[int, Lines] = {}
        self.jobs = 0
        self.stopped = False
        # Processor time of answered jobs, and of the unanswered one.
        self._cpu_reported_ms = self.cpu_ms = 0

    @classmethod
    async def start(cls, folder: Path, python: str = sys.executable, without: Set[str] = frozenset()) -> Child:
        """``without`` are variables that the child does not get. Raises ``OSError`` if no process
        can be started, and then leaves nothing open.
        """
        private = _PRIVATE | without
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            control, their_control = socket.socketpair()
            ours.enter_context(control)
            theirs.enter_context(their_control)
            # The worker's end closes when the worker dies, for any reason.
            their_lifeline, lifeline = os.pipe()
            ours.callback(os.close, lifeline)
            theirs.callback(os.close, their_lifeline)
            lines = [their_control.fileno(), their_lifeline]
            process = subprocess.Popen(
                [python, "-m", "servo.worker.child_main", *map(str, lines), str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=lines,
                env={name: value for name, value in os.environ.items() if name not in private},
                start_new_session=True,
            )
            ours.callback(_end_at_once, process)
            child = cls(process, lifeline, os.pidfd_open(process.pid))
            ours.pop_all()
        await child._listen(control)
        return child

    @property
    def alive(self) -> bool:
        return not self.stopped and not self._ended.is_set()

    def resident_bytes(self) -> int:
        """Of the process itself, without its children."""
        return process_tree.resident_bytes(self._process.pid)

    def exceeds_limit(self, limit: int) -> int:
        """The memory of the process and everything it started, if that exceeds the limit; else 0."""
        return process_tree.exceeds_limit(self._process.pid, limit)

    def begin(
        self, job: Answer, take_line: TakesLine, take_record: TakesRecord | None = None
    ) -> asyncio.Future[Answer]:
        """The answer, or :class:`ChildDied`. A caller that stops waiting leaves the child busy and must stop it."""
        answer: asyncio.Future[Answer] = self._loop.create_future()
        self._answer, self._take_line, self._take_record = answer, take_line, take_record
        self.jobs += 1
        if self._ended.is_set():
            self._fail(ChildDied(_exit_text(self._process.wait())))
        else:
            assert self._control
            self._control.write(frames.pack(job))
        return answer

    async def run(self, job: Answer, take_line: TakesLine) -> Answer:
        return await self.begin(job, take_line)

    async def end(self) -> None:
        """For an idle child: it exits once its control socket is closed."""
        if self._control:
            self._control.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), _ENDING_SECONDS)
        await self.stop()

    async def stop(self, grace: float = 0.0) -> None:
        """Sends TERM, and KILL after the grace period, to the whole group."""
        self.stopped = True
        if grace > 0 and not self._ended.is_set():
            self._signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), grace)
        if not self._ended.is_set():
            self._signal(signal.SIGKILL)
        await self._ended.wait()
        self._process.wait()
        if self._control:
            self._control.close()
        for pipe in list(self._printed):
            self._read_what_is_there(pipe)
            self._close(pipe)

    async def _listen(self, control: socket.socket) -> None:
        """The pidfd shows the end of the process, even if other processes still hold its pipes."""

        def note_end() -> None:
            self._loop.remove_reader(self._watched)
            os.close(self._watched)
            os.close(self._lifeline)
            self.cpu_ms = max(_cpu_ms(self._process.pid) - self._cpu_reported_ms, 0)
            # Before the process is reaped, because its pid and group id can be reused afterwards.
            self._signal(signal.SIGKILL)
            self._ended.set()
            how = _exit_text(self._process.wait())
            orphans.ours.discard(self._process.pid)
            orphans.end_soon()
            self._fail(ChildDied(how))

        self._loop.add_reader(self._watched, note_end)
        streams: dict[Stream, Any] = {"STDOUT": self._process.stdout, "STDERR": self._process.stderr}
        for name, pipe in streams.items():
            os.set_blocking(pipe.fileno(), False)
            self._printed[pipe.fileno()] = Lines(partial(self._print, name))
            self._loop.add_reader(pipe.fileno(), self._read, pipe.fileno())
        self._control, _ = await self._loop.create_connection(lambda: _Answers(self._take, self._fail), sock=control)

    def _take(self, answer: Answer) -> None:
        """First reads the pipes, because everything printed before the answer belongs to this job."""
        if "record" in answer:
            if self._take_record is not None:
                self._take_record(answer["record"])
            return
        for pipe in list(self._printed):
            self._read_what_is_there(pipe)
        self._take_line = self._take_record = None
        self._cpu_reported_ms += answer["usage"]["cpu_ms"]
        if self._answer and not self._answer.done():
            self._answer.set_result(answer)

    def _fail(self, error: Exception) -> None:
        if self._answer and not self._answer.done():
            self._answer.set_exception(error)

    def _read_what_is_there(self, pipe: int) -> None:
        for _ in range(_READS_AT_THE_END_MAX):
            if not self._read(pipe):
                break
        if pipe in self._printed:
            self._printed[pipe].end()

    def _read(self, pipe: int) -> bool:
        """Whether there may be more. Never waits, because a child whose output is not read would block."""
        try:
            piece = os.read(pipe, _READ_BYTES) if pipe in self._printed else b""
        except BlockingIOError:
            return False
        if piece:
            self._printed[pipe].feed(piece)
        else:
            self._close(pipe)
        return bool(piece)

    def _close(self, pipe: int) -> None:
        lines = self._printed.pop(pipe, None)
        if lines is None:
            return
        lines.end()
        self._loop.remove_reader(pipe)
        for each in (self._process.stdout, self._process.stderr):
            if each and not each.closed and each.fileno() == pipe:
                each.close()

    def _print(self, stream: Stream, line: str) -> None:
        if self._take_line is not None:
            self._take_line(stream, line)

    def _signal(self, number: int) -> None:
        # The group outlives its leader while any process in it lives.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


class _Answers(asyncio.Protocol):
    """The socket on which a child sends answers."""

    def __init__(self, take: Callable[[Answer], None], fail: Callable[[Exception], None]) -> None:
        self._take, self._fail = take, fail
        self._received = bytearray()

    def data_received(self, data: bytes) -> None:
        self._received += data
        try:
            while (answer := frames.take(self._received)) is not None:
                self._take(answer)
        except ValueError as error:
            self._fail(ChildDied(f"its answer cannot be decoded: {error}"))


def _end_at_once(process: subprocess.Popen[bytes]) -> None:
    with process:
        process.kill()


def _cpu_ms(pid: int) -> int:
    """Processor time of an ended process that was not reaped yet, including the children that it waited for."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, words[11:15])) * 1000 // _TICKS_PER_SECOND


def _exit_text(code: int) -> str:
    if code < 0:
        return f"its process was ended by signal {signal.Signals(-code).name}"
    return f"its process ended with exit code {code}"
