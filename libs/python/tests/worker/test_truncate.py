"""Outcomes always fit into the ledger and lose no more than necessary."""

from __future__ import annotations

from servo.v1 import callback_pb2, common_pb2, materialization_pb2, quality_pb2, state_pb2
from servo.worker.truncate import FINISH_BYTES_MAX, truncate


def finish(inputs: int = 0, checks: int = 0, traceback: int = 0, items: int = 0) -> callback_pb2.FinishAttemptRequest:
    """Approximate sizes in bytes."""
    read = [materialization_pb2.InputVersion(asset_key="n/a", materialization_id="M" * 26)] * (inputs // 33)
    made = callback_pb2.FinishAttemptRequest(
        outcome=state_pb2.OUTCOME_SUCCEEDED,
        outputs=[materialization_pb2.Output(asset_key="n/b", uri="file:///b/", inputs=read)],
        checks=[quality_pb2.CheckResult(name="c", message="m" * 1000, actual="a" * 1000)] * (checks // 2000),
        usage=common_pb2.Usage(cpu_ms=7),
    )
    if traceback:
        made.error.CopyFrom(common_pb2.TaskError(message="broken", traceback="t" * traceback))
    if items:
        made.items.CopyFrom(materialization_pb2.MappedItems(count=1, items_json=["i" * items]))
    return made


def test_small_outcome_is_unchanged() -> None:
    given = finish(inputs=10_000, checks=10_000, traceback=10_000, items=10_000)
    assert truncate(finish(inputs=10_000, checks=10_000, traceback=10_000, items=10_000)) == given


def test_redundant_parts_are_dropped_first() -> None:
    made = truncate(finish(inputs=100_000, checks=10_000))
    assert (len(made.outputs[0].inputs), made.checks[0].actual, made.outputs[0].uri) == (0, "a" * 1000, "file:///b/")
    made = truncate(finish(checks=100_000, traceback=10_000))
    assert made.ByteSize() <= FINISH_BYTES_MAX
    assert (len(made.checks), made.checks[0].actual, made.checks[0].message) == (50, "", "m" * 256 + "…")
    assert len(made.error.traceback) == 10_000
    made = truncate(finish(traceback=100_000))
    assert (made.error.message, made.error.traceback) == ("broken", "")


def test_oversized_items_fail_with_a_reason() -> None:
    made = truncate(finish(items=100_000))
    assert (made.outcome, made.error.category) == (state_pb2.OUTCOME_FAILED, state_pb2.ERROR_CATEGORY_USER_CODE)
    assert "yield fewer or smaller items" in made.error.message
    assert (len(made.outputs), made.usage.cpu_ms) == (0, 7)
