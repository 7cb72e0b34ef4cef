"""Schedules and sensors, which start runs automatically."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, ParamSpec, TypeVar, get_args

from servo.errors import InvalidValue

from .durations import Duration
from .functions import check_function
from .location import Location, of_caller, of_function
from .registry import record
from .run import Run
from .settings import Secret
from .validation import listed, one_of, text

P = ParamSpec("P")
R = TypeVar("R")
# Local times that do not exist because the clock jumps forward, and local times that occur twice.
Gap = Literal["shift", "skip"]
Overlap = Literal["first", "last", "both"]
Scheme = Literal["standard", "github"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Starts a run at the times of a cron expression. A tick uses the definition of its time."""

    name: str
    cron: str
    run: Run
    zone: str = ""
    description: str = ""
    gap: Gap | None = None
    overlap: Overlap | None = None
    catch_up_window: Duration | None = None
    catch_up_max_ticks: int | None = None
    skip_while_running: bool = False
    location: Location = field(default_factory=of_caller, compare=False)

    def __post_init__(self) -> None:
        text("name", self.name)
        one_of("gap", self.gap, (None, *get_args(Gap)))
        one_of("overlap", self.overlap, (None, *get_args(Overlap)))
        record(self)


def schedule(
    cron: str,
    *,
    name: str = "",
    zone: str = "",
    gap: Gap | None = None,
    overlap: Overlap | None = None,
    catch_up_window: Duration | None = None,
    catch_up_max_ticks: int | None = None,
    skip_while_running: bool = False,
) -> Callable[[Callable[[], Run]], Schedule]:
    """Decorates a function that returns the run; it is called when the manifest is made, not at tick time."""

    def wrap(function: Callable[[], Run]) -> Schedule:
        check_function(function, "@schedule")
        run = function()
        if not isinstance(run, Run):
            raise InvalidValue(f"{of_function(function)}: the schedule `{function.__name__}` must return a Run")
        return Schedule(
            name or function.__name__,
            cron,
            run,
            zone,
            inspect.getdoc(function) or "",
            gap,
            overlap,
            catch_up_window,
            catch_up_max_ticks,
            skip_while_running,
            of_function(function),
        )

    return wrap


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run that a poll requests; the same key means the same run. ``run`` may be omitted if the sensor has one."""

    run_key: str
    run: Run | None = None


@dataclass(frozen=True, slots=True)
class SensorResult:
    """The result of a poll: the next cursor, runs to start, or a reason why there are none."""

    cursor: str = ""
    runs: Sequence[RunRequest] = ()
    skip_reason: str = ""

    def __post_init__(self) -> None:
        listed("runs", self.runs, RunRequest, "run requests")


class PollSensor(Generic[P, R]):
    """A function that is polled with the cursor of its last result."""

    def __init__(
        self,
        function: Callable[P, R],
        name: str,
        interval: Duration | None,
        timeout: Duration | None,
        run: Run | None,
        secrets: Sequence[Secret],
        pool: str,
        max_runs: int,
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name = text("name", name)
        self.description = inspect.getdoc(function) or ""
        self.interval, self.timeout = interval, timeout
        self.run, self.secrets, self.pool, self.max_runs = run, secrets, pool, max_runs
        self.location: Location = of_function(function)
        record(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)


def sensor(
    *,
    name: str = "",
    interval: Duration | None = None,
    timeout: Duration | None = None,
    run: Run | None = None,
    secrets: Sequence[Secret] = (),
    pool: str = "",
    max_runs: int = 0,
) -> Callable[[Callable[P, R]], PollSensor[P, R]]:
    """Decorates a function that gets the cursor and returns a :class:`SensorResult`."""

    def wrap(function: Callable[P, R]) -> PollSensor[P, R]:
        check_function(function, "@sensor")
        return PollSensor(function, name or function.__name__, interval, timeout, run, secrets, pool, max_runs)

    return wrap


@dataclass(frozen=True, slots=True)
class Push:
    """Messages of the bus whose attributes match the filter (AIP-160)."""

    topic: str
    filter: str = ""


@dataclass(frozen=True, slots=True)
class Webhook:
    """Signed HTTP requests from outside."""

    secret: Secret
    scheme: Scheme | None = None

    def __post_init__(self) -> None:
        one_of("scheme", self.scheme, (None, *get_args(Scheme)))


@dataclass(frozen=True, slots=True)
class Activity:
    """Events of runs and assets in this workspace."""

    assets: Sequence[Any] = ()
    # AIP-160: "state = FAILED AND labels.team = 'x'".
    run_filter: str = ""


@dataclass(frozen=True, slots=True)
class Sensor:
    """Starts a run on an event, without user code: ``Sensor("new_files", Push("files"), run=…)``."""

    name: str
    on: Push | Webhook | Activity
    run: Run
    description: str = ""
    max_runs: int = 0
    location: Location = field(default_factory=of_caller, compare=False)

    def __post_init__(self) -> None:
        text("name", self.name)
        record(self)
