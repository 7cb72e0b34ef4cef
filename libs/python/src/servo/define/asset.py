"""Assets: plain functions with a key and settings.

A definition can be called like the function it was, in a test or a REPL. Parameters without a default name what the
function reads: ``def clean(orders)`` reads the asset ``orders`` of the same namespace, or the only one of that name.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypedDict, TypeVar, Unpack, get_args, overload

from servo.errors import InvalidValue
from servo.model.asset_key import AssetKey

from .functions import check_function, check_known, refuse_yielding
from .io import Io
from .location import Location, of_caller, of_function
from .registry import note
from .validation import listed, of_kind, one_of, one_or_more

# What users say about an asset is imported by those who say it: the decorator alone stays quick to import.
if TYPE_CHECKING:
    from .checks import Check, CheckFunction
    from .conditions import Condition
    from .dependencies import In
    from .durations import Duration
    from .partitions import Dimension, Partitions
    from .settings import Cause, Freshness, Resources, Retry, Secret

P = ParamSpec("P")
R = TypeVar("R")
Isolation = Literal["fresh", "warm"]
# The parameter that gets a Context instead of data.
CONTEXT = "context"
DEFAULT_NAMESPACE = "default"


class AssetOptions(TypedDict, total=False):
    """What can be said about an asset; everything may be left out."""

    # By parameter, or a list of what must be there first. Parameters that it does not name are found by their names.
    deps: Mapping[str, Any] | Sequence[Any]
    partitions: Partitions | Dimension | None
    checks: Sequence[Check | CheckFunction[..., Any]]
    # A blocked output waits for a decision instead of failing the task.
    quarantine: bool
    retry: Retry | int | None
    retry_on: Cause | Sequence[Cause]
    # For user code, from start to finish.
    timeout: Duration | None
    # Silence of the worker until it counts as lost.
    heartbeat_timeout: Duration | None
    pool: str
    # Higher goes first.
    priority: int
    resources: Resources | None
    tags: Mapping[str, str]
    owners: Sequence[str]
    freshness: Freshness | None
    # A change makes the data stale; empty: the packaged code decides.
    code_version: str
    # How values are stored: "parquet", "json", "pickle", or a class of the user with store and load.
    io: Io
    config: Mapping[str, Any]
    secrets: Sequence[Secret]
    automation: Condition | None
    # Its function may answer skip.
    may_skip: bool
    # Gives items, over which downstream assets may be mapped.
    yields_items: bool
    # "fresh" starts a new process for every attempt, "warm" goes on with one that did its last job well.
    isolation: Isolation


@dataclass(frozen=True, slots=True)
class Settings:
    """:class:`AssetOptions` with every gap filled."""

    deps: Mapping[str, Any] | Sequence[Any] = ()
    partitions: Partitions | Dimension | None = None
    checks: Sequence[Check | CheckFunction[..., Any]] = ()
    quarantine: bool = False
    retry: Retry | int | None = None
    retry_on: Sequence[Cause] = ()
    timeout: Duration | None = None
    heartbeat_timeout: Duration | None = None
    pool: str = ""
    priority: int = 0
    resources: Resources | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    owners: Sequence[str] = ()
    freshness: Freshness | None = None
    code_version: str = ""
    io: Io = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    secrets: Sequence[Secret] = ()
    automation: Condition | None = None
    may_skip: bool = False
    yields_items: bool = False
    isolation: Isolation = "warm"

    def __post_init__(self) -> None:
        one_of("isolation", self.isolation, get_args(Isolation))

    @classmethod
    def of(cls, options: AssetOptions) -> Settings:
        given: dict[str, Any] = dict(options)
        # A worker goes by it as it stands here.
        given["retry_on"] = one_or_more(given.get("retry_on", ()))
        return cls(**given)


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """One of the assets that a multi-asset's function makes; it can be named as an upstream."""

    key: AssetKey
    description: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    io: Io = ""
    # Of this output; those in the options of a multi-asset are about the first.
    checks: Sequence[Check | CheckFunction[..., Any]] = ()

    def __post_init__(self) -> None:
        of_kind("key", self.key, AssetKey, "AssetKey(namespace, name)")


class Asset(Generic[P, R]):
    """A function with a key. The first output has the task; further ones are made by it."""

    __name__: str

    def __init__(self, function: Callable[P, R], outputs: Sequence[Output], settings: Settings) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.outputs = tuple(outputs)
        self.settings = settings
        self.location: Location = of_function(function)
        note(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    @property
    def key(self) -> AssetKey:
        return self.outputs[0].key

    def __getitem__(self, name: str) -> Output:
        """The output of this name, to depend on it."""
        for output in self.outputs:
            if output.key.name == name:
                return output
        known = ", ".join(output.key.name for output in self.outputs)
        raise KeyError(f"{self.key} makes no `{name}`; it makes {known}")

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """What the function takes, in order."""
        return dict(inspect.signature(self.function).parameters)

    def __repr__(self) -> str:
        return f"<asset {self.key} at {self.location}>"


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Made elsewhere: Servo knows it and never runs it."""

    key: AssetKey
    description: str = ""
    partitions: Partitions | Dimension | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    owners: Sequence[str] = ()
    freshness: Freshness | None = None
    # A class with load(partition), for functions that read it by a parameter.
    io: Io = ""
    location: Location = field(default_factory=of_caller)


@overload
def asset(function: Callable[P, R], /) -> Asset[P, R]: ...
@overload
def asset(
    *, namespace: str = ..., name: str = ..., description: str = ..., **options: Unpack[AssetOptions]
) -> Callable[[Callable[P, R]], Asset[P, R]]: ...
def asset(
    function: Callable[P, R] | None = None,
    /,
    *,
    namespace: str = DEFAULT_NAMESPACE,
    name: str = "",
    description: str = "",
    **options: Unpack[AssetOptions],
) -> Asset[P, R] | Callable[[Callable[P, R]], Asset[P, R]]:
    """Makes a function an asset called ``namespace/name``; the name is the function's unless given."""

    def wrap(function: Callable[P, R]) -> Asset[P, R]:
        check_function(function, "@asset")
        if not options.get("yields_items"):
            refuse_yielding(function, "@asset", "answer a value, or say yields_items=True for items to map over")
        key = AssetKey(namespace, name or function.__name__)
        output = Output(
            key, description or inspect.getdoc(function) or "", options.get("tags", {}), options.get("io", "")
        )
        return Asset(function, [output], Settings.of(options))

    check_known("@asset", options, AssetOptions.__annotations__, "namespace", "name", "description")
    return wrap if function is None else wrap(function)


def multi_asset(
    *, outputs: Sequence[str | Output], namespace: str = DEFAULT_NAMESPACE, **options: Unpack[AssetOptions]
) -> Callable[[Callable[P, R]], Asset[P, R]]:
    """Makes a function the maker of several assets; it answers a mapping from name to value, or values in order."""
    check_known("@multi_asset", options, AssetOptions.__annotations__, "outputs", "namespace")
    given = listed("outputs", outputs, (str, Output), "names and outputs")
    named = [Output(AssetKey(namespace, each)) if isinstance(each, str) else each for each in given]
    if not named:
        raise InvalidValue("outputs is empty; name what the function makes")

    def wrap(function: Callable[P, R]) -> Asset[P, R]:
        check_function(function, "@multi_asset")
        refuse_yielding(function, "@multi_asset", "answer a mapping from name to value, or the values in order")
        return Asset(function, named, Settings.of(options))

    return wrap


def source(
    name: str,
    *,
    namespace: str = DEFAULT_NAMESPACE,
    description: str = "",
    partitions: Partitions | Dimension | None = None,
    tags: Mapping[str, str] | None = None,
    owners: Sequence[str] = (),
    freshness: Freshness | None = None,
    io: Io = "",
) -> Source:
    """An asset that is made elsewhere. What a parameter gets of it is what ``load(partition)`` of the class ``io``
    answers."""
    tags = {} if tags is None else tags
    return Source(AssetKey(namespace, name), description, partitions, tags, owners, freshness, io)


def as_input(given: object) -> In:
    """Whatever names an upstream, in its long form."""
    from .dependencies import In

    if isinstance(given, In):
        return given
    if isinstance(given, str | Asset | Source | Output):
        return In(given)
    raise InvalidValue(f"{given!r} names no asset: write an asset, its key as text, or In(…)")
