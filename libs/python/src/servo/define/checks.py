"""Checks of an asset's data: built-in checks, SQL, and user functions.

``@asset(checks=[row_count(at_least=1), unique("id"), sql("SELECT * FROM output WHERE amount <
0")])``, or ``@check(orders)`` on a function that gets the asset's value.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar, get_args

from servo.errors import InvalidValue

from .durations import Duration, read_duration
from .functions import check_function
from .location import Location, of_function
from .registry import record
from .validation import UINT32, UINT64, amount, one_of, text, texts, whole

if TYPE_CHECKING:
    from .asset import Asset, Output

P = ParamSpec("P")
R = TypeVar("R")
Severity = Literal["info", "warning", "error", "critical"]
Phase = Literal["pre", "post"]


@dataclass(frozen=True, slots=True)
class RowCount:
    at_least: int | None = None
    at_most: int | None = None
    # The minimum share of the previous version's rows, in millionths.
    share_of_previous_ppm: int | None = None

    def __post_init__(self) -> None:
        for field, given in (("at_least", self.at_least), ("at_most", self.at_most)):
            if given is not None:
                whole(field, given, UINT64)
        if self.share_of_previous_ppm is not None:
            whole("share_of_previous_ppm", self.share_of_previous_ppm, UINT32)


@dataclass(frozen=True, slots=True)
class NotNull:
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unique:
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MaxAge:
    column: str
    max_age: timedelta


@dataclass(frozen=True, slots=True)
class Schema:
    # Arrow types by column; a type that ends with "?" allows nulls.
    columns: tuple[tuple[str, str], ...]
    allow_extra: bool = False


@dataclass(frozen=True, slots=True)
class Sql:
    query: str


@dataclass(frozen=True, slots=True)
class Code:
    function: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    spec: RowCount | NotNull | Unique | MaxAge | Schema | Sql | Code
    severity: Severity | None = None
    phase: Phase | None = None
    timeout: Duration | None = None
    description: str = ""

    def __post_init__(self) -> None:
        text("name", self.name)
        one_of("severity", self.severity, (None, *get_args(Severity)))
        one_of("phase", self.phase, (None, *get_args(Phase)))

    def on(
        self,
        *,
        severity: Severity | None = None,
        phase: Phase | None = None,
        timeout: Duration | None = None,
        name: str = "",
    ) -> Check:
        """The same check with other settings: ``row_count(at_least=1).on(severity="critical")``."""
        return replace(
            self,
            name=name or self.name,
            severity=severity or self.severity,
            phase=phase or self.phase,
            timeout=self.timeout if timeout is None else timeout,
        )


def row_count(
    *,
    at_least: int | None = None,
    at_most: int | None = None,
    share_of_previous: float | None = None,
) -> Check:
    """``share_of_previous=0.9``: at least nine tenths of the rows of the previous version."""
    if at_least is at_most is share_of_previous is None:
        raise InvalidValue("row_count has no limit; give at_least, at_most or share_of_previous")
    ppm = None if share_of_previous is None else round(amount("share_of_previous", share_of_previous) * 1_000_000)
    found = RowCount(at_least, at_most, ppm)
    if at_least is not None and at_most is not None and at_least > at_most:
        raise InvalidValue(f"at_least is {at_least} and at_most is {at_most}; no number of rows is both")
    return Check("row_count", found)


def not_null(*columns: str) -> Check:
    return Check(f"not_null_{'_'.join(_names('not_null', columns))}", NotNull(columns))


def unique(*columns: str) -> Check:
    return Check(f"unique_{'_'.join(_names('unique', columns))}", Unique(columns))


def max_age(column: str, age: Duration) -> Check:
    return Check(f"max_age_{text('column', column)}", MaxAge(column, read_duration(age, "age")))


def schema(columns: Mapping[str, str], *, allow_extra: bool = False) -> Check:
    """Arrow types by column, such as ``{"id": "int64", "note": "string?"}``; ``?`` allows nulls."""
    return Check("schema", Schema(tuple(texts("columns", columns).items()), allow_extra))


def sql(query: str, *, name: str = "sql") -> Check:
    """A DuckDB query over the view ``output``, or before user code over a view per parameter; every
    row is a failure.
    """
    if not text("query", query).strip():
        raise InvalidValue("query is empty; write a SELECT that gives the rows which are wrong")
    return Check(name, Sql(query))


class CheckFunction(Generic[P, R]):
    """A user function that checks an asset; callable as a plain function."""

    def __init__(self, function: Callable[P, R], check: Check, targets: Sequence[str]) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.check = check
        self.targets = tuple(targets)
        self.location: Location = of_function(function)
        # A check without targets belongs to the asset that lists it.
        if targets:
            record(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)


def check(
    *assets: str | Asset[..., Any] | Output,
    name: str = "",
    severity: Severity | None = None,
    phase: Phase | None = None,
    timeout: Duration | None = None,
) -> Callable[[Callable[P, R]], CheckFunction[P, R]]:
    """Makes a function a check of these assets; it returns a bool or a :class:`~servo.define.results.CheckOutcome`."""

    from .asset import as_input

    targets = [as_input(each).key for each in assets]

    def wrap(function: Callable[P, R]) -> CheckFunction[P, R]:
        check_function(function, "@check")
        made = Check(name or function.__name__, Code(function), severity, phase, timeout, _words(function))
        return CheckFunction(function, made, targets)

    return wrap


def _names(check: str, columns: Sequence[str]) -> Sequence[str]:
    if not columns:
        raise InvalidValue(f'{check} looks at no column; name some: {check}("id")')
    return [text("a column", each) for each in columns]


def _words(function: Callable[..., Any]) -> str:
    import inspect

    return inspect.getdoc(function) or ""
