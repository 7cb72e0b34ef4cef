"""One attempt: its preparation, its child process, and the ways in which it can be stopped early."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from typing import Any

from servo.client.errors import CallFailed
from servo.data.errors import StorageFailed
from servo.v1 import common_pb2, state_pb2, worker_pb2

from . import inputs, outcome
from .attempt_reports import AttemptReports, now
from .child import Answer, Child, ChildDied
from .children import Children, Kind
from .code import BadCode, CodeCache
from .environments import BadEnvironment, Environments, EnvironmentUnavailable
from .inputs import BadInputs
from .job import job_of
from .memory_usage import MemoryOverTime
from .outcome import Finish
from .redaction import Redactor
from .reports import TakesReports
from .secrets import SecretNotFound, Secrets, SecretUnavailable
from .truncate import truncate

_log = logging.getLogger("servo.worker")
# The start of shorter attempts is not reported, because their outcome includes it.
_START_REPORTED_AFTER = 0.1
# Starts are reported together, because nobody waits for them.
_STARTS_REPORTED_EVERY = 0.1
# How often the memory of attempts with a limit is checked.
_MEMORY_CHECK_SECONDS = 0.1
_MEMORY_HINT = "give it more memory or less to do, deploy, then `servo runs retry`"
_DIED_HINT = (
    "look for what ends a process: os._exit, native code that crashes, SIGKILL of a machine without memory; then "
    "`servo runs retry`"
)


class Attempt:
    def __init__(
        self,
        envelope: worker_pb2.TaskEnvelope,
        *,
        worker_id: str,
        session: str,
        code: CodeCache,
        environments: Environments,
        secrets: Secrets,
        children: Children,
        reports: TakesReports,
        kill_grace: float,
    ) -> None:
        self.envelope = envelope
        self._code, self._environments, self._children = code, environments, children
        self._kill_grace = kill_grace
        # Completed to stop the attempt early, with its outcome.
        self._cut: asyncio.Future[Finish] = asyncio.get_running_loop().create_future()
        self._child: Child | None = None
        self._memory = MemoryOverTime()
        self._background: asyncio.Task[None] | None = None
        self._preparing: asyncio.Task[Any] | None = None
        self._secrets, self._redact = secrets, secrets.redact
        self.reports = AttemptReports(
            envelope,
            worker_id=worker_id,
            session=session,
            reports=reports,
            redact=secrets.redact,
            cancel=self.cancel,
        )
        self._inputs: list[worker_pb2.ResolvedInput] = []
        self._started = now()

    def cancel(self) -> None:
        """The run was cancelled."""
        self._cut_short(outcome.cancelled())

    def interrupt(self, kill_grace: float) -> None:
        """The worker shuts down and returns the attempt. User code has ``kill_grace`` seconds after TERM."""
        self._kill_grace = kill_grace
        self._cut_short(outcome.interrupted())

    async def run(self) -> None:
        """Runs the attempt to its end and reports the outcome."""
        self._started = now()
        loop = asyncio.get_running_loop()
        lasts = loop.call_at(next_tick(loop.time() + _START_REPORTED_AFTER), self._start_background)
        try:
            finish = truncate(await self._work())
        except Exception as error:
            # A full disk, a failed fork or a bug of the worker. Reported, because the next attempt
            # would otherwise be lost in the same way.
            _log.exception("attempt %s could not be run", self.envelope.attempt_id)
            finish = truncate(self._ended_early(f"the worker could not run it: {type(error).__name__}: {error}"))
        finally:
            lasts.cancel()
            if self._background:
                self._background.cancel()
        self.reports.finish(finish, self._started)

    def _cut_short(self, end: Finish) -> None:
        if self._cut.done():
            return
        self._cut.set_result(end)
        if self._preparing:
            self._preparing.cancel()

    async def _work(self) -> Finish:
        envelope = self.envelope
        if envelope.operation != state_pb2.OPERATION_MATERIALIZE:
            operation = state_pb2.Operation.Name(envelope.operation).removeprefix("OPERATION_").lower()
            return outcome.failed("CONFIGURATION", f"this worker materializes assets and cannot {operation}")
        if envelope.code.WhichOneof("target") != "entry_point":
            return outcome.failed("CONFIGURATION", "this worker runs Python functions and brings no handlers")
        try:
            async with asyncio.timeout(self._seconds_left()):
                kind, secrets = await self._prepare()
        except TimeoutError:
            return self._ended_early("its code and inputs were not there before its deadline")
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._cut.done() or task is None:
                raise
            task.uncancel()
            return self._cut.result()
        except BadInputs as error:
            return self._failed("INPUT", error)
        except (BadCode, BadEnvironment, SecretNotFound) as error:
            return self._failed("CONFIGURATION", error)
        except (EnvironmentUnavailable, SecretUnavailable, StorageFailed) as error:
            return self._failed("INFRASTRUCTURE", error)
        except CallFailed as error:
            return self._failed("INFRASTRUCTURE", f"the code could not be downloaded: {error}")
        child = await self._children.take(kind, fresh=envelope.isolated)
        return await self._run_in(child, kind, secrets)

    async def _prepare(self) -> tuple[Kind, dict[str, str]]:
        """The steps before there is a child; they can take long and can be stopped."""
        self._preparing = asyncio.current_task()
        try:
            if self._cut.done():
                raise asyncio.CancelledError
            self._inputs = await self._resolved_inputs()
            secrets = await self._secrets.read(self.envelope.secrets)
            folder = await self._code.get(self.envelope.workspace, self.envelope.code.artifact_digest)
            python = await self._environments.python_for(folder)
            return Kind(folder, python, self.envelope.resources.memory_bytes, self._secrets.variables), secrets
        finally:
            self._preparing = None

    async def _run_in(self, child: Child, kind: Kind, secrets: dict[str, str]) -> Finish:
        keep = False
        try:
            work = await self._answer_of(child, kind.memory_bytes, secrets)
            died = work.exception()
            if died is not None:
                return await self._without_answer(child, died)
            answer = work.result()
            finish = outcome.finish_of(answer, self._redact, Redactor(secrets))
            self._memory.add_to(finish.usage)
            outcome.add_outputs(finish, answer, self.envelope.code_version, inputs.recorded(self._inputs))
            keep = answer["outcome"] != "failed" and not answer["worn"] and child.alive
            return finish
        finally:
            if keep:
                self._children.give_back(kind, child, fresh=self.envelope.isolated)
            else:
                await child.stop()

    async def _answer_of(self, child: Child, memory_bytes: int, secrets: dict[str, str]) -> asyncio.Future[Answer]:
        """The returned future is done: with an answer, or because the child ended without one."""
        work = child.begin(
            job_of(self.envelope, self._inputs, secrets), self.reports.take_line, self.reports.take_record
        )
        self._child = child
        watching = asyncio.create_task(self._watch_memory(child, memory_bytes)) if memory_bytes else None
        try:
            ends: list[asyncio.Future[Any]] = [work, self._cut]
            await asyncio.wait(ends, timeout=self._seconds_left(), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if watching:
                watching.cancel()
            # An answer that arrives before the child is killed counts.
            if not work.done():
                await child.stop(self._kill_grace)
            self._child = None
        return work

    async def _without_answer(self, child: Child, died: BaseException) -> Finish:
        await child.stop()
        if isinstance(died, ChildDied):
            finish = self._ended_early(str(died), _DIED_HINT)
        else:
            finish = self._ended_early(f"its process cannot be talked to: {died}")
        finish.usage.CopyFrom(common_pb2.Usage(cpu_ms=child.cpu_ms, memory_peak_bytes=self._memory.peak_bytes))
        self._memory.add_to(finish.usage)
        return finish

    async def _watch_memory(self, child: Child, limit: int) -> None:
        """Ends the attempt at once when it exceeds its limit, because it could allocate more during a grace period."""
        while not (used := child.exceeds_limit(limit)):
            await asyncio.sleep(_MEMORY_CHECK_SECONDS)
        self._memory.look(used, time.monotonic())
        self._kill_grace = 0.0
        self._cut_short(outcome.failed("INFRASTRUCTURE", _too_much(used, limit), _MEMORY_HINT))

    def _ended_early(self, how: str, hint: str = "") -> Finish:
        if self._cut.done():
            return self._cut.result()
        if self._seconds_left() <= 0:
            return outcome.failed("TIMEOUT", _too_long(self.envelope.timeouts.execution.ToTimedelta().total_seconds()))
        return outcome.failed("INFRASTRUCTURE", self._redact(how), hint)

    def _failed(self, category: str, why: object) -> Finish:
        """A failure outside user code, with the message of the disk, pip or the process."""
        return outcome.failed(category, self._redact(str(why)))

    async def _resolved_inputs(self) -> list[worker_pb2.ResolvedInput]:
        if not self.envelope.inputs_uri:
            return list(self.envelope.inputs)
        return await asyncio.to_thread(inputs.read_input_list, self.envelope.inputs_uri, self.envelope.inputs_digest)

    def _seconds_left(self) -> float:
        deadline = self.envelope.deadline
        return max(deadline.seconds + deadline.nanos / 1e9 - time.time(), 0.0)

    def _start_background(self) -> None:
        self._background = asyncio.create_task(self.reports.run(self._started, self._sample_memory))

    def _sample_memory(self) -> None:
        if self._child:
            self._memory.look(self._child.resident_bytes(), time.monotonic())


def _too_long(seconds: float) -> str:
    if not seconds:
        return "the attempt passed its deadline and was ended"
    return f"it took longer than its timeout, {seconds:g} s, and was ended"


def _too_much(used: int, limit: int) -> str:
    used_mb, limit_mb = used / 1_000_000, limit / 1_000_000
    return (
        f"its processes had {used_mb:,.0f} MB in memory, and the asset's limit is {limit_mb:,.0f} MB; "
        "raise it with @asset(resources=Resources(memory=…)), or do the work in smaller pieces"
    )


def next_tick(at: float) -> float:
    """The next time, not before ``at``, at which all attempts of this worker report their start."""
    return math.ceil(at / _STARTS_REPORTED_EVERY) * _STARTS_REPORTED_EVERY
