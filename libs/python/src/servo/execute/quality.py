"""Checks before and after user code, and their effect on the output.

Before user code begins, all checks are known to be executable here: none is skipped, and none fails
after an hour because a package is missing.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from functools import partial
from typing import Any

from servo.define.checks import Check, Code, Phase, Schema, Severity, Sql
from servo.define.durations import read_duration
from servo.define.results import CheckOutcome
from servo.errors import ServoError

from . import tables
from .check_kinds import no_rows, outcome, user_outcome
from .deadline import DeadlinePassed, within
from .exceptions import message_of
from .packages import PackageMissing, require

_TIMEOUT_SECONDS = 300.0


class CannotCheck(ServoError):
    """A check cannot be executed; its author or the worker's operator must fix it."""


class Gating(Enum):
    """The effect of the checks on the output."""

    ALLOW = 1
    # A check of severity error failed; the run is flagged.
    WARN = 2
    # A critical check failed; the task fails.
    BLOCK = 3
    # A critical check failed; the output goes into quarantine.
    QUARANTINE = 4


@dataclass(frozen=True, slots=True)
class CheckResult:
    name: str
    outcome: CheckOutcome
    severity: Severity
    # The check itself failed to run, rather than the data failing the check.
    errored: bool = False
    phase: Phase = "post"
    seconds: float = 0.0
    # Its thread may still run.
    timed_out: bool = False

    @property
    def passed(self) -> bool:
        return self.outcome.passed


@dataclass(frozen=True, slots=True)
class Read:
    """The value of a parameter; for several partitions a mapping from each to its value."""

    value: Any
    several: bool = False

    @property
    def pieces(self) -> list[tuple[str, Any]]:
        return [(str(key), value) for key, value in self.value.items()] if self.several else [("", self.value)]


def prepare(checks: Iterable[Check], parameters: Sequence[str]) -> None:
    """Raises :class:`CannotCheck` for the first check that cannot be executed. ``parameters`` are
    the names of the inputs.
    """
    for check in checks:
        what = f"the check `{check.name}`"
        try:
            if isinstance(check.spec, Schema | Sql):
                require("pyarrow", what)
            if isinstance(check.spec, Sql):
                require("duckdb", what)
        except PackageMissing as error:
            raise CannotCheck(f"{error} where the code runs") from None
        prepare_pre(check, parameters)


def prepare_pre(check: Check, parameters: Sequence[str]) -> None:
    """The part that is known as soon as the asset is defined."""
    if check.phase != "pre":
        return
    what, names = f"the check `{check.name}`", ", ".join(parameters)
    if not parameters:
        raise CannotCheck(f"{what} checks inputs (phase pre), and the asset has none; make it phase post")
    match check.spec:
        case Code(function):
            if _arguments(function, parameters) is None:
                raise CannotCheck(f"{what} of phase pre has parameters that are not inputs of the asset; use {names}")
        case Sql():
            pass
        case _ if len(parameters) > 1:
            raise CannotCheck(
                f"{what} of phase pre checks one input, and the asset reads {names}; write it as SQL or as a function"
            )


def run_pre(checks: Iterable[Check], inputs: Mapping[str, Read], now: datetime) -> list[CheckResult]:
    return [_run(check, partial(_look_at_inputs, check, inputs, now)) for check in checks]


def run_post(check: Check, value: Any, now: datetime, previous_rows: int | None = None) -> CheckResult:
    return _run(check, partial(outcome, check, value, now, previous_rows))


def gating(results: Iterable[CheckResult], *, quarantine: bool) -> Gating:
    """A failure before user code blocks, because there is no output to quarantine."""
    failed = [result for result in results if not result.passed]
    if any(result.severity == "critical" and result.phase == "pre" for result in failed):
        return Gating.BLOCK
    severities = {result.severity for result in failed}
    if "critical" in severities:
        return Gating.QUARANTINE if quarantine else Gating.BLOCK
    return Gating.WARN if "error" in severities else Gating.ALLOW


def blocking(results: Iterable[CheckResult]) -> str:
    """The critical checks that failed, as text."""
    failed = [check for check in results if not check.passed and check.severity == "critical"]
    return "; ".join(f"the check `{check.name}` failed: {check.outcome.message}".rstrip(": ") for check in failed)


def _look_at_inputs(check: Check, inputs: Mapping[str, Read], now: datetime) -> CheckOutcome:
    match check.spec:
        case Code(function):
            chosen = _arguments(function, list(inputs)) or {}
            return user_outcome(function(**{name: inputs[read].value for name, read in chosen.items()}))
        case Sql(query):
            return no_rows(query, {name: _whole(read) for name, read in inputs.items()})
    ((_, only),) = inputs.items()
    found = CheckOutcome(True, "there is no partition to check")
    for label, value in only.pieces:
        found = outcome(check, value, now)
        if not found.passed:
            return replace(found, message=f"{label}: {found.message}") if label else found
    return found


def _whole(read: Read) -> Any:
    import pyarrow

    return pyarrow.concat_tables([tables.arrow(value) for _, value in read.pieces], promote_options="permissive")


def _arguments(function: Callable[..., Any], parameters: Sequence[str]) -> dict[str, str] | None:
    """Maps the function's parameters to the asset's: by name, or if each has exactly one."""
    wanted = inspect.signature(function).parameters
    needed = [name for name, each in wanted.items() if each.default is inspect.Parameter.empty]
    if all(name in parameters for name in needed):
        return {name: name for name in wanted if name in parameters}
    return {needed[0]: parameters[0]} if len(needed) == len(parameters) == 1 else None


def _run(check: Check, look: Callable[[], CheckOutcome]) -> CheckResult:
    severity: Severity = check.severity or "error"
    phase: Phase = check.phase or "post"
    seconds = _TIMEOUT_SECONDS if check.timeout is None else read_duration(check.timeout).total_seconds()
    began = time.monotonic()
    errored = timed_out = False
    try:
        found = within(seconds, look, f"check-{check.name}")
    except DeadlinePassed as late:
        errored = timed_out = True
        found = CheckOutcome(False, str(late), metadata={"timeout": "true"})
    # Everything, SystemExit included, because it came from the check.
    except BaseException as error:
        errored = True
        found = CheckOutcome(False, f"the check broke: {type(error).__name__}: {message_of(error)}")
    return CheckResult(check.name, found, severity, errored, phase, time.monotonic() - began, timed_out)
