"""Assets: plain functions with a key and settings.

A definition can be called like its function, in a test or a REPL. Parameters without a default are
dependencies: ``def clean(orders)`` reads the asset ``orders`` of the same namespace, or the only
asset of that name.
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
from .registry import record
from .validation import listed, of_kind, one_of, one_or_more

# Imported for type checking only, because the decorator alone must be quick to import.
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
    """The options of an asset; all are optional."""

    # By parameter, or a list of assets that must exist first. Other parameters are resolved by
    # name.
    deps: Mapping[str, Any] | Sequence[Any]
    partitions: Partitions | Dimension | None
    checks: Sequence[Check | CheckFunction[..., Any]]
    # A blocked output goes into quarantine instead of failing the task.
    quarantine: bool
    retry: Retry | int | None
    retry_on: Cause | Sequence[Cause]
    # The limit for user code.
    timeout: Duration | None
    # The time without a heartbeat after which the attempt counts as lost.
    heartbeat_timeout: Duration | None
    pool: str
    # Higher runs first.
    priority: int
    resources: Resources | None
    tags: Mapping[str, str]
    owners: Sequence[str]
    freshness: Freshness | None
    # A change makes the data stale; by default a digest of the packaged code.
    code_version: str
    # The storage format: "parquet", "json", "pickle", or a user's class with store and load.
    io: Io
    config: Mapping[str, Any]
    secrets: Sequence[Secret]
    automation: Condition | None
    # The function may skip.
    may_skip: bool
    # The asset yields items, over which downstream assets can be mapped.
    yields_items: bool
    # "fresh" starts a process for every attempt; "warm" reuses the process of a successful attempt.
    isolation: Isolation


@dataclass(frozen=True, slots=True)
class Settings:
    """:class:`AssetOptions` with defaults filled in."""

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
        # Normalized here, because the worker uses it directly.
        given["retry_on"] = one_or_more(given.get("retry_on", ()))
        return cls(**given)


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """One of the assets that a multi-asset makes; it can be used as a dependency."""

    key: AssetKey
    description: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    io: Io = ""
    # Checks of this output; those in the options of a multi-asset apply to the first output.
    checks: Sequence[Check | CheckFunction[..., Any]] = ()

    def __post_init__(self) -> None:
        of_kind("key", self.key, AssetKey, "AssetKey(namespace, name)")


class Asset(Generic[P, R]):
    """A function with a key. The first output names the task, which makes the others too."""

    __name__: str

    def __init__(self, function: Callable[P, R], outputs: Sequence[Output], settings: Settings) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.outputs = tuple(outputs)
        self.settings = settings
        self.location: Location = of_function(function)
        record(self)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    @property
    def key(self) -> AssetKey:
        return self.outputs[0].key

    def __getitem__(self, name: str) -> Output:
        """The output of this name, for use as a dependency."""
        for output in self.outputs:
            if output.key.name == name:
                return output
        known = ", ".join(output.key.name for output in self.outputs)
        raise KeyError(f"{self.key} makes no `{name}`; it makes {known}")

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The function's parameters, in order."""
        return dict(inspect.signature(self.function).parameters)

    def __repr__(self) -> str:
        return f"<asset {self.key} at {self.location}>"


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """An asset that is made elsewhere: Servo knows it and never runs it."""

    key: AssetKey
    description: str = ""
    partitions: Partitions | Dimension | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    owners: Sequence[str] = ()
    freshness: Freshness | None = None
    # A class with load(partition), for functions that read it through a parameter.
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
    """Makes a function an asset ``namespace/name``; the name defaults to the function's."""

    def wrap(function: Callable[P, R]) -> Asset[P, R]:
        check_function(function, "@asset")
        if not options.get("yields_items"):
            refuse_yielding(function, "@asset", "return a value, or set yields_items=True for items to map over")
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
    """Makes a function the maker of several assets; it returns a mapping from name to value, or the values in order."""
    check_known("@multi_asset", options, AssetOptions.__annotations__, "outputs", "namespace")
    given = listed("outputs", outputs, (str, Output), "names and outputs")
    named = [Output(AssetKey(namespace, each)) if isinstance(each, str) else each for each in given]
    if not named:
        raise InvalidValue("outputs is empty; name what the function makes")

    def wrap(function: Callable[P, R]) -> Asset[P, R]:
        check_function(function, "@multi_asset")
        refuse_yielding(function, "@multi_asset", "return a mapping from name to value, or the values in order")
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
    """Declares an asset that is made elsewhere. Parameters get the result of ``load(partition)`` of
    the class ``io``.
    """
    tags = {} if tags is None else tags
    return Source(AssetKey(namespace, name), description, partitions, tags, owners, freshness, io)


def as_input(given: object) -> In:
    """Any form of a dependency as an :class:`In`."""
    from .dependencies import In

    if isinstance(given, In):
        return given
    if isinstance(given, str | Asset | Source | Output):
        return In(given)
    raise InvalidValue(f"{given!r} names no asset: write an asset, its key as text, or In(…)")
