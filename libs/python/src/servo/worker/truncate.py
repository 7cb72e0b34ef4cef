"""Shortens outcomes to the size limit of the ledger. A larger outcome would be refused for good,
and its attempt would count as lost.
"""

from __future__ import annotations

from collections.abc import Callable

from servo.v1 import callback_pb2, common_pb2, state_pb2

# Events have at most 64 KiB, and the server adds a little.
FINISH_BYTES_MAX = 60 * 1024
_MESSAGE_CHARS_MAX = 256

Finish = callback_pb2.FinishAttemptRequest


def truncate(finish: Finish) -> Finish:
    """Drops the least important parts first. Items are never dropped; if they do not fit, the attempt fails."""
    for give_up in _STEPS:
        if finish.ByteSize() <= FINISH_BYTES_MAX:
            return finish
        give_up(finish)
    if finish.ByteSize() <= FINISH_BYTES_MAX:
        return finish
    message = (
        f"what the task reports has {finish.ByteSize()} bytes, {FINISH_BYTES_MAX} are allowed: yield fewer or smaller "
        "items, names of files rather than their content for instance"
    )
    error = common_pb2.TaskError(category="ERROR_CATEGORY_USER_CODE", message=message, retriable=False)
    return Finish(outcome=state_pb2.OUTCOME_FAILED, error=error, usage=finish.usage)


def _drop_inputs(finish: Finish) -> None:
    """The inputs are also in the output's metadata."""
    for output in finish.outputs:
        output.ClearField("inputs")


def _drop_check_details(finish: Finish) -> None:
    for check in finish.checks:
        for field in ("metadata", "actual", "expected"):
            check.ClearField(field)
        check.message = _cut(check.message)


def _shorten_error(finish: Finish) -> None:
    if finish.HasField("error"):
        finish.error.ClearField("traceback")
        finish.error.message = _cut(finish.error.message)
    finish.skip_reason = _cut(finish.skip_reason)


def _cut(text: str) -> str:
    return text if len(text) <= _MESSAGE_CHARS_MAX else f"{text[:_MESSAGE_CHARS_MAX]}…"


_STEPS: tuple[Callable[[Finish], None], ...] = (_drop_inputs, _drop_check_details, _shorten_error)
