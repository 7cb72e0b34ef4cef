"""A child process: runs one function after the other, of one version of the user's code.

``python -m servo.worker.child_main SOCKET LIFELINE FOLDER`` reads jobs from the socket and answers each. Standard
output and error stay the user's. When the worker dies, the lifeline breaks, and everything here ends with it.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import resource
import signal
import socket
import sys
import threading
import time
from datetime import UTC, datetime
from typing import Any

from servo.define.asset import CONTEXT, Asset, as_input
from servo.define.checks import CheckFunction
from servo.define.context import Context
from servo.define.results import Skip
from servo.define.settings import Retry
from servo.errors import ServoError
from servo.execute.errors import InputMissing, describe
from servo.execute.outputs import Outputs, outputs
from servo.execute.quality import CheckResult, run_check, runs_in_memory
from servo.model.partition_key import PartitionKey

from . import frames

_PR_SET_PDEATHSIG = 1


class CodeMissing(ServoError):
    """The function that the deployment names is not in the code."""


def main() -> None:
    control, lifeline = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
    # What user code starts must not hold the lines to the worker.
    for line in (control.fileno(), lifeline):
        os.set_inheritable(line, False)
    _die_with_the_worker(lifeline)
    sys.path.insert(0, sys.argv[3])
    jobs = control.makefile("rb")
    while (job := frames.read(jobs)) is not None:
        answer = run(job)
        sys.stdout.flush()
        sys.stderr.flush()
        control.sendall(_packed(answer))


def _die_with_the_worker(lifeline: int) -> None:
    """The thread ends the whole group; the kernel ends this process even while native code holds the interpreter."""

    def watch() -> None:
        os.read(lifeline, 1)
        os.killpg(0, signal.SIGKILL)

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=watch, name="servo-lifeline", daemon=True).start()


def run(job: dict[str, Any]) -> dict[str, Any]:
    before = resource.getrusage(resource.RUSAGE_SELF)
    answer = _attempt(job)
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    answer["usage"] = {"cpu_ms": round(cpu * 1000), "memory_peak_bytes": after.ru_maxrss * 1024}
    return answer


def _attempt(job: dict[str, Any]) -> dict[str, Any]:
    retry: Retry | None = None
    try:
        asset = _find(job["module"], job["function"])
        retry = Retry.of(asset.settings.retry, tuple(asset.settings.retry_on))
        made = outputs(asset, asset.function(**_arguments(asset, job)))
        checks = _checks(asset, made, job)
        items = None if made.items is None else [json.dumps(item) for item in made.items]
    except Skip as skip:
        return {"outcome": "skipped", "reason": skip.reason}
    # Whatever user code raises, a SystemExit too, is its failure and not the end of this process.
    except BaseException as error:
        return {"outcome": "failed", "error": _error(error, retry)}
    return {"outcome": "succeeded", "items": items, "checks": checks}


def _find(module: str, function: str) -> Asset[..., Any]:
    found = getattr(importlib.import_module(module), function, None)
    if not isinstance(found, Asset):
        raise CodeMissing(f"`{module}.{function}` is no asset in this version of the code; build and deploy it again")
    return found


def _arguments(asset: Asset[..., Any], job: dict[str, Any]) -> dict[str, Any]:
    deps = asset.settings.deps
    mapped = {name for name, each in deps.items() if as_input(each).each} if hasattr(deps, "items") else set()
    arguments: dict[str, Any] = {}
    for parameter in job["parameters"]:
        if parameter in mapped and job["item_json"]:
            arguments[parameter] = json.loads(job["item_json"])
        else:
            raise InputMissing(f"no version was resolved for the parameter `{parameter}`")
    if CONTEXT in asset.parameters:
        arguments[CONTEXT] = _context(job)
    return arguments


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


def _checks(asset: Asset[..., Any], made: Outputs, job: dict[str, Any]) -> list[dict[str, Any]]:
    """Those that the deployment names, as far as they look at values in memory."""
    known = {each.name: each for each in (_plain(each) for each in asset.settings.checks)}
    found = []
    for name in job["checks"]:
        check = known.get(name)
        if check is not None and check.phase != "pre" and runs_in_memory(check):
            began = time.monotonic()
            result = run_check(check, made.values[str(asset.key)], datetime.now(UTC))
            found.append(_told(result, time.monotonic() - began))
    return found


def _plain(given: Any) -> Any:
    return given.check if isinstance(given, CheckFunction) else given


def _told(result: CheckResult, seconds: float) -> dict[str, Any]:
    outcome = result.outcome
    return {
        "name": result.name,
        "passed": outcome.passed,
        "severity": result.severity,
        "message": outcome.message,
        "actual": outcome.actual,
        "expected": outcome.expected,
        "errored": result.errored,
        "seconds": seconds,
        "metadata": dict(outcome.metadata),
    }


def _error(error: BaseException, retry: Retry | None) -> dict[str, Any]:
    told = describe(error, retry)
    category = "CONFIGURATION" if isinstance(error, CodeMissing | ImportError | SyntaxError) else told.category.name
    return {
        "category": category,
        "message": told.message,
        "type": told.type,
        "location": told.location,
        "traceback": told.traceback,
        "retriable": told.retriable,
    }


def _packed(answer: dict[str, Any]) -> bytes:
    try:
        return frames.pack(answer)
    except (TypeError, ValueError) as error:
        told = {"category": "USER_CODE", "message": f"what the function answered cannot be sent: {error}"}
        return frames.pack({"outcome": "failed", "error": told, "usage": answer["usage"]})


if __name__ == "__main__":
    main()
