"""One attempt, on a worker or locally: checks of the inputs, user code, checks of the outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from servo.define.asset import CONTEXT, Asset
from servo.define.checks import Check
from servo.define.context import Context

from .outputs import Outputs, outputs
from .quality import CheckResult, Gating, Read, gating, run_post, run_pre
from .task_checks import checked_output


@dataclass(slots=True)
class AttemptState:
    """Filled during the attempt, so that results from before a failure are kept."""

    checks: list[CheckResult] = field(default_factory=list)
    # None if a check of the inputs blocked user code.
    made: Outputs | None = None
    gating: Gating = Gating.ALLOW


def run_attempt(
    asset: Asset[..., Any],
    checks: Sequence[Check],
    inputs: Mapping[str, Read],
    context: Context,
    now: datetime,
    attempted: AttemptState,
    *,
    quarantine: bool,
    previous_rows: int | None = None,
) -> None:
    """Raises what user code raises. ``checks`` are prepared; ``previous_rows`` is the row count of
    the previous version.
    """
    attempted.checks += run_pre([check for check in checks if check.phase == "pre"], inputs, now)
    attempted.gating = gating(attempted.checks, quarantine=False)
    if attempted.gating is Gating.BLOCK:
        return
    arguments = {name: read.value for name, read in inputs.items()}
    if CONTEXT in asset.parameters:
        arguments[CONTEXT] = context
    attempted.made = outputs(asset, asset.function(**arguments))
    for check in checks:
        if check.phase != "pre":
            value = attempted.made.values[checked_output(asset, check)]
            attempted.checks.append(run_post(check, value, now, previous_rows))
    attempted.gating = gating(attempted.checks, quarantine=quarantine)
