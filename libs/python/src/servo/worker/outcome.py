"""The final report of an attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from servo.execute.quality import Gating
from servo.manifest.values import duration
from servo.v1 import callback_pb2, common_pb2, materialization_pb2, quality_pb2, state_pb2

from .redaction import Redactor
from .sanitize import plain

_TRACEBACK_BYTES_MAX = 16 * 1024

Finish = callback_pb2.FinishAttemptRequest


def failed(category: str, message: str, hint: str = "") -> Finish:
    """``hint`` replaces the hint that follows from the category."""
    error = common_pb2.TaskError(category=f"ERROR_CATEGORY_{category}", message=plain(message), hint=hint)
    return Finish(outcome="OUTCOME_FAILED", error=error)


def cancelled() -> Finish:
    return Finish(outcome="OUTCOME_CANCELLED")


def interrupted() -> Finish:
    """The attempt is returned: the task is tried again, which does not count as a failure."""
    return Finish(outcome="OUTCOME_INTERRUPTED")


def finish_of(answer: Mapping[str, Any], redact: Redactor, own: Redactor) -> Finish:
    """Converts a child's answer. ``own`` knows only the secrets of this task."""
    finish = Finish(usage=common_pb2.Usage(**answer["usage"]))
    finish.checks.extend(_check(each, redact) for each in answer["checks"])
    match answer["outcome"]:
        case "skipped":
            finish.outcome, finish.skip_reason = state_pb2.OUTCOME_SKIPPED, redact(answer["reason"])
        case "failed":
            finish.outcome = state_pb2.OUTCOME_FAILED
            finish.error.CopyFrom(_error(answer["error"], redact))
        case _:
            _succeed(finish, answer, redact, own)
    return finish


def _succeed(finish: Finish, answer: Mapping[str, Any], redact: Redactor, own: Redactor) -> None:
    finish.outcome = state_pb2.OUTCOME_SUCCEEDED
    finish.gating = getattr(quality_pb2, f"GATING_{answer['gating']}")
    if answer["gating"] == Gating.BLOCK.name:
        # The function succeeded; the task fails because of its checks.
        finish.error.CopyFrom(failed("USER_CODE", redact(answer["blocking"])).error)
    if answer["items"] is not None:
        items = answer["items"]
        # Items are stored in the ledger and cannot be redacted, because that would change them.
        # Only the task's own secrets count: another task's secret may be an ordinary word here.
        if any(own.finds(item) for item in items):
            finish.outcome = state_pb2.OUTCOME_FAILED
            finish.error.CopyFrom(failed("USER_CODE", "an item holds a secret; yield what does not name it").error)
            finish.ClearField("gating")
            return
        finish.items.CopyFrom(materialization_pb2.MappedItems(count=len(items), items_json=items))


def add_outputs(
    finish: Finish,
    answer: Mapping[str, Any],
    code_version: str,
    inputs: Sequence[materialization_pb2.InputVersion],
) -> None:
    """Adds the committed outputs and their inputs."""
    if finish.outcome != state_pb2.OUTCOME_SUCCEEDED:
        return
    for output in answer.get("outputs", ()):
        finish.outputs.append(materialization_pb2.Output(**output, code_version=code_version, inputs=inputs))


def _error(error_dict: Mapping[str, Any], redact: Redactor) -> common_pb2.TaskError:
    error = common_pb2.TaskError(
        category=f"ERROR_CATEGORY_{error_dict['category']}",
        message=redact(error_dict["message"]),
        type=redact(error_dict.get("type", "")),
        location=redact(error_dict.get("location", "")),
        traceback=_end(redact(error_dict.get("traceback", ""))),
    )
    if error_dict.get("retriable") is not None:
        error.retriable = error_dict["retriable"]
    return error


def _end(traceback: str) -> str:
    """Keeps the end, which is most useful. Truncated here and not in the child, because a part of a
    secret could remain at the cut.
    """
    raw = traceback.encode()
    return traceback if len(raw) <= _TRACEBACK_BYTES_MAX else raw[-_TRACEBACK_BYTES_MAX:].decode(errors="ignore")


def _check(check: Mapping[str, Any], redact: Redactor) -> quality_pb2.CheckResult:
    return quality_pb2.CheckResult(
        name=check["name"],
        passed=check["passed"],
        severity=f"SEVERITY_{check['severity'].upper()}",
        phase=f"CHECK_PHASE_{check['phase'].upper()}",
        message=redact(check["message"]),
        actual=redact(check["actual"]),
        expected=redact(check["expected"]),
        errored=check["errored"],
        duration=duration(check["seconds"]),
        metadata={redact(key): redact(value) for key, value in check["metadata"].items()},
    )
