"""Settings of an asset that have several fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, get_args

from servo.errors import InvalidValue
from servo.model.categories import ErrorCategory
from servo.model.suggestions import did_you_mean

from .durations import Duration, read_duration
from .validation import INT32, UINT32, UINT64, amount, listed, one_of, one_or_more, shown, whole, words

Category = Literal["transient", "infrastructure", "timeout", "user_code", "input", "configuration"]
Provider = Literal["env", "gcp-secret-manager"]
Backoff = Literal["exponential", "linear", "constant"]
# An exception class, or its name.
Kind = type[BaseException] | str
# A category, or an exception class.
Cause = Category | Kind

_CATEGORIES = {category.name.lower(): category for category in ErrorCategory}
_SIZE = re.compile(r"([0-9]+)\s*(B|KB|MB|GB|KiB|MiB|GiB)")
_SIZES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@dataclass(frozen=True, slots=True, init=False)
class Retry:
    """How often and after which delays a task is retried. ``None`` uses the server's default."""

    # Failures until the task fails for good, including the first.
    attempts: int | None
    backoff: Backoff | None
    delay: Duration | None
    max_delay: Duration | None
    on: tuple[Cause, ...]
    never_on: tuple[Kind, ...]

    def __init__(
        self,
        attempts: int | None = None,
        backoff: Backoff | None = None,
        delay: Duration | None = None,
        max_delay: Duration | None = None,
        on: Cause | Sequence[Cause] = (),
        never_on: Kind | Sequence[Kind] = (),
    ) -> None:
        if attempts is not None and whole("attempts", attempts, INT32) < 1:
            raise InvalidValue(f"attempts is {attempts}; write at least 1, which means no second try")
        one_of("backoff", backoff, (None, *get_args(Backoff)))
        for field, length in (("delay", delay), ("max_delay", max_delay)):
            if length is not None:
                read_duration(length, field)
        object.__setattr__(self, "attempts", attempts)
        object.__setattr__(self, "backoff", backoff)
        object.__setattr__(self, "delay", delay)
        object.__setattr__(self, "max_delay", max_delay)
        object.__setattr__(self, "on", causes("on", on))
        object.__setattr__(self, "never_on", causes("never_on", never_on))

    @classmethod
    def of(cls, given: Retry | int | None, on: tuple[Cause, ...]) -> Retry | None:
        """Accepts the shorthand ``retry=3, retry_on=(ConnectionError,)``."""
        if given is None and not on:
            return None
        if isinstance(given, bool) or not isinstance(given, Retry | int | None):
            raise InvalidValue(f"retry is {shown(given)}; write how many attempts there are, or Retry(…)")
        policy = cls(attempts=given) if isinstance(given, int) else given or cls()
        return cls(policy.attempts, policy.backoff, policy.delay, policy.max_delay, (*policy.on, *on), policy.never_on)

    @property
    def categories(self) -> list[ErrorCategory]:
        return sorted({_CATEGORIES[cause] for cause in self.on if isinstance(cause, str) and cause in _CATEGORIES})

    @property
    def types(self) -> list[str]:
        return sorted({type_name(cause) for cause in self.on if not (isinstance(cause, str) and cause in _CATEGORIES)})

    @property
    def never_types(self) -> list[str]:
        return sorted({type_name(cause) for cause in self.never_on})


def causes(field: str, given: Cause | Sequence[Cause]) -> tuple[Cause, ...]:
    """Accepts a single cause: ``retry_on=ConnectionError``."""
    found = listed(field, one_or_more(given), (str, type), "categories, exception classes and their names")
    for each in found:
        if isinstance(each, type) and not issubclass(each, BaseException):
            raise InvalidValue(f"{field} holds the class {each.__name__}, which is not an exception")
        if isinstance(each, str) and each not in _CATEGORIES:
            _refuse_misspelt(field, each)
    return found


def _refuse_misspelt(field: str, name: str) -> None:
    """Refuses names that look like a misspelt category; any other name may be an exception class."""
    hint = did_you_mean(name, _CATEGORIES) if name.islower() else ""
    if hint:
        raise InvalidValue(f"{field} holds `{name}`, which is not a category{hint}")


def type_name(cause: Kind) -> str:
    """The name of this class in a task's error."""
    return cause if isinstance(cause, str) else cause.__name__


@dataclass(frozen=True, slots=True)
class Resources:
    """The needs of a task. ``cpu`` in cores, ``memory`` in bytes or as "512MiB"."""

    cpu: float = 0
    memory: int | str = 0
    gpus: int = 0
    # Labels that the worker must offer, such as "region=eu" or "duckdb".
    capabilities: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "capabilities", words("capabilities", self.capabilities))
        amount("cpu", self.cpu)
        whole("gpus", self.gpus, UINT32)
        whole("memory", self.memory_bytes, UINT64)

    @property
    def cpu_millicores(self) -> int:
        return round(self.cpu * 1000)

    @property
    def memory_bytes(self) -> int:
        if isinstance(self.memory, int):
            return self.memory
        found = _SIZE.fullmatch(self.memory) if isinstance(self.memory, str) else None
        if not found:
            raise InvalidValue(f"`{self.memory}` is not a size: write bytes, or a text such as 512MiB or 2GB")
        return int(found[1]) * _SIZES[found[2]]


@dataclass(frozen=True, slots=True)
class Freshness:
    """When data is too old. Either limit is optional."""

    max_age: Duration | None = None
    # A new version must exist by each of these times.
    deadline_cron: str = ""
    zone: str = ""

    @property
    def max_age_length(self) -> timedelta | None:
        return None if self.max_age is None else read_duration(self.max_age)


@dataclass(frozen=True, slots=True)
class Secret:
    """A reference to a secret. The worker reads the value, which is stored nowhere."""

    # The name of the secret in user code.
    name: str
    provider: Provider
    # The name of a variable, or the resource name of a secret.
    path: str
    # A pinned version; empty means the newest.
    version: str = ""

    def __post_init__(self) -> None:
        one_of("provider", self.provider, get_args(Provider))

    @classmethod
    def env(cls, name: str, variable: str = "") -> Secret:
        return cls(name, "env", variable or name)
