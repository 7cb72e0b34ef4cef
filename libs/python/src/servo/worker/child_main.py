"""The child process: runs functions of one version of the user's code, one after the other.

``python -m servo.worker.child_main SOCKET LIFELINE FOLDER`` reads jobs from the socket and answers
each. Standard output and error belong to the user. When the worker dies, the lifeline closes and
the whole process group ends.
"""

from __future__ import annotations

import ctypes
import importlib
import logging
import os
import signal
import socket
import sys
import threading
from datetime import UTC, datetime
from typing import Any

from servo.data.errors import AlreadyWritten, BadFolder, StorageFailed
from servo.define.asset import Asset
from servo.define.context import LOGGER, Context
from servo.define.location import Location
from servo.define.results import Skip
from servo.define.settings import Retry
from servo.errors import ServoError
from servo.execute.attempt import AttemptState, run_attempt
from servo.execute.errors import describe
from servo.execute.packages import require_for_outputs
from servo.execute.quality import CheckResult, blocking, prepare
from servo.model.partition_key import PartitionKey

from . import checks, frames, job_data
from .records import Records, flush_printed
from .usage import Meter

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


class CodeMissing(ServoError):
    """The code does not have the function that the deployment names."""


def main() -> None:
    control, lifeline = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    # Processes that user code starts must not inherit the connection to the worker.
    for line in (control.fileno(), lifeline):
        os.set_inheritable(line, False)
    _exit_with_worker(lifeline)
    sys.path.insert(0, sys.argv[3])
    jobs = control.makefile("rb")
    records = Records(control)
    while (job := frames.read(jobs)) is not None:
        answer = run(job)
        if not flush_printed():
            # The job has succeeded, but the next one could not print.
            answer["worn"] = True
        records.send(_packed(answer))


def _exit_with_worker(lifeline: int) -> None:
    """A thread kills the whole group; the kernel kills this process even if native code holds the interpreter."""

    def watch() -> None:
        os.read(lifeline, 1)
        os.killpg(0, signal.SIGKILL)

    system = ctypes.CDLL(None)
    system.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # Orphans of user code become children of this process, and of the worker when this process
    # ends.
    system.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    threading.Thread(target=watch, name="servo-lifeline", daemon=True).start()


def run(job: dict[str, Any]) -> dict[str, Any]:
    # Tools look for the trace here, and processes that user code starts inherit it.
    os.environ.update(job["trace"])
    meter = Meter()
    moved: dict[str, int] = {}
    answer = _attempt(job, moved)
    answer["usage"] = meter.read() | moved
    for name in job["trace"]:
        os.environ.pop(name, None)
    return answer


def _attempt(job: dict[str, Any], usage: dict[str, int]) -> dict[str, Any]:
    retry: Retry | None = None
    definition: Location | None = None
    attempted = AttemptState()
    try:
        asset = _find(job["module"], job["function"])
        definition = asset.location
        retry = Retry.of(asset.settings.retry, tuple(asset.settings.retry_on))
        wanted = [checks.read(each) for each in job["checks"]]
        prepare(wanted, job_data.parameters(job))
        require_for_outputs(asset)
        previous = job_data.previous_rows(job, wanted)
        inputs, read_bytes = job_data.read_inputs(asset, job)
        usage["read_bytes"] = read_bytes
        context, now = _context(job), datetime.now(UTC)
        run_attempt(
            asset, wanted, inputs, context, now, attempted, quarantine=job["quarantine"], previous_rows=previous
        )
        answer = _succeeded(attempted)
        answer["outputs"] = job_data.write_outputs(asset, attempted, job)
        usage["written_bytes"] = sum(output["byte_size"] for output in answer["outputs"])
    except Skip as skip:
        answer = {"outcome": "skipped", "reason": str(skip.reason)}
        logging.getLogger(LOGGER).info("skipped: %s", skip.reason or "no reason given")
    # Everything that user code raises, SystemExit included, fails the job and not this process.
    except BaseException as error:
        answer = {"outcome": "failed", "error": _error(error, retry, definition)}
    answer["checks"] = [_check_to_answer(result) for result in attempted.checks]
    # The child is not reused if a check left a thread or the job left a process behind.
    answer["worn"] = any(result.timed_out for result in attempted.checks) or _has_processes()
    return answer


def _has_processes() -> bool:
    """Whether a process that was started here is alive or was not waited for. Orphans count,
    because this process is their reaper.
    """
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _succeeded(attempted: AttemptState) -> dict[str, Any]:
    made = attempted.made
    return {
        "outcome": "succeeded",
        "gating": attempted.gating.name,
        "blocking": blocking(attempted.checks),
        "items": None if made is None or made.items is None else list(made.items),
    }


def _find(module: str, function: str) -> Asset[..., Any]:
    found = getattr(importlib.import_module(module), function, None)
    if not isinstance(found, Asset):
        raise CodeMissing(
            f"`{module}.{function}` is not an asset in this version of the code; build and deploy it again"
        )
    return found


def _context(job: dict[str, Any]) -> Context:
    partition = job["partition"]
    return Context(
        asset_key=job["asset_key"],
        partition=PartitionKey.parse(partition) if partition else None,
        run_id=job["run_id"],
        attempt_id=job["attempt_id"],
        attempt=job["attempt"],
        idempotency_key=job["idempotency_key"],
        fencing_token=job["fencing_token"],
        map_index=job["map_index"],
        config=job["config"],
        secrets=job["secrets"],
    )


def _check_to_answer(result: CheckResult) -> dict[str, Any]:
    outcome = result.outcome
    return {
        "name": result.name,
        # The bool of a frame library is not encodable as JSON.
        "passed": bool(outcome.passed),
        "severity": result.severity,
        "phase": result.phase,
        "message": outcome.message,
        "actual": outcome.actual,
        "expected": outcome.expected,
        "errored": result.errored,
        "seconds": result.seconds,
        "metadata": dict(outcome.metadata),
    }


def _error(error: BaseException, retry: Retry | None, definition: Location | None) -> dict[str, Any]:
    described = describe(error, retry, definition)
    category = described.category.name
    if isinstance(error, CodeMissing | ImportError | SyntaxError | BadFolder):
        category = "CONFIGURATION"
    elif isinstance(error, AlreadyWritten | StorageFailed):
        category = "INFRASTRUCTURE"
    return {
        "category": category,
        "message": described.message,
        "type": described.type,
        "location": described.location,
        "traceback": described.traceback,
        "retriable": described.retriable,
    }


def _packed(answer: dict[str, Any]) -> bytes:
    try:
        return frames.pack(answer)
    except (TypeError, ValueError) as error:
        described = {"category": "USER_CODE", "message": f"the function's result cannot be encoded: {error}"}
        empty: dict[str, Any] = {"checks": [], "worn": answer["worn"]}
        return frames.pack({"outcome": "failed", "error": described, "usage": answer["usage"], **empty})


if __name__ == "__main__":
    main()
