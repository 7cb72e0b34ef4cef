"""Checks over values in memory, and what they mean for the output.

Values are rows (a list of mappings), columns (a mapping of lists, or a frame with ``columns``), or anything with a
length. Schema and SQL checks look at stored data and are run by the worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sized
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from servo.define.checks import Check, Code, MaxAge, NotNull, RowCount, Schema, Severity, Sql, Unique
from servo.define.results import CheckOutcome
from servo.errors import InvalidValue


class Gating(Enum):
    """What the checks mean for the output."""

    ALLOW = 1
    # A check of severity error failed; the run is flagged.
    WARN = 2
    # A critical check failed; the task fails.
    BLOCK = 3
    # A critical check failed; the output waits for a decision.
    QUARANTINE = 4


@dataclass(frozen=True, slots=True)
class CheckResult:
    name: str
    outcome: CheckOutcome
    severity: Severity
    # The check itself broke, rather than the data.
    errored: bool = False

    @property
    def passed(self) -> bool:
        return self.outcome.passed


def runs_in_memory(check: Check) -> bool:
    return not isinstance(check.spec, Schema | Sql)


def run_check(check: Check, value: Any, now: datetime) -> CheckResult:
    severity: Severity = check.severity or "error"
    try:
        return CheckResult(check.name, _outcome(check, value, now), severity)
    except Exception as error:
        message = f"the check broke: {type(error).__name__}: {error}"
        return CheckResult(check.name, CheckOutcome(False, message), severity, errored=True)


def gating(results: Iterable[CheckResult], *, quarantine: bool) -> Gating:
    failed = {result.severity for result in results if not result.passed}
    if "critical" in failed:
        return Gating.QUARANTINE if quarantine else Gating.BLOCK
    return Gating.WARN if "error" in failed else Gating.ALLOW


def _outcome(check: Check, value: Any, now: datetime) -> CheckOutcome:
    match check.spec:
        case Code(function):
            return _answered(function, value)
        case RowCount(at_least, at_most):
            return _row_count(_rows(value), at_least, at_most)
        case NotNull(columns):
            empty = sum(1 for column in columns for cell in _column(value, column) if cell is None)
            return CheckOutcome(empty == 0, f"{empty} values are empty" if empty else "", str(empty), "0")
        case Unique(columns):
            keys = list(zip(*(_column(value, column) for column in columns), strict=True))
            again = len(keys) - len(set(keys))
            return CheckOutcome(again == 0, f"{again} rows repeat another" if again else "", str(again), "0")
        case MaxAge(column, max_age):
            age = now - max(_column(value, column))
            return CheckOutcome(age <= max_age, "" if age <= max_age else "is too old", str(age), str(max_age))
        case _:
            raise InvalidValue(f"`{check.name}` looks at stored data; the worker runs it")


def _answered(function: Callable[[Any], Any], value: Any) -> CheckOutcome:
    found = function(value)
    if isinstance(found, CheckOutcome):
        return found
    # What frames answer (numpy.bool_) is no bool, and does as one.
    if found is None or isinstance(found, str) or not hasattr(found, "__bool__"):
        raise InvalidValue(f"it answered {found!r}; answer a bool or a CheckOutcome")
    return CheckOutcome(bool(found))


def _row_count(count: int, at_least: int | None, at_most: int | None) -> CheckOutcome:
    fits = (at_least is None or count >= at_least) and (at_most is None or count <= at_most)
    wanted = f"{'' if at_least is None else at_least} to {'' if at_most is None else at_most}"
    return CheckOutcome(fits, "" if fits else f"has {count} rows", str(count), wanted.strip())


def _rows(value: Any) -> int:
    if isinstance(value, Mapping):
        return max((len(column) for column in value.values() if isinstance(column, Sized)), default=0)
    if not isinstance(value, Sized):
        raise InvalidValue(f"a {type(value).__name__} has no rows to count")
    return len(value)


def _column(value: Any, name: str) -> list[Any]:
    if isinstance(value, list | tuple):
        return [row.get(name) for row in value]
    return list(value[name])
