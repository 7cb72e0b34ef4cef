"""Projects become manifests, or all of their faults with file and line."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import servo
from servo import InvalidValue, ManifestInvalid, Retry, asset
from servo.define.asset import AssetOptions
from servo.manifest import canonical
from servo.manifest.make import make
from servo.manifest.project import KINDS, Definition, Project
from servo.v1 import code_pb2

from . import shop

ARTIFACT = code_pb2.CodeArtifact(digest="0" * 64, kind="ARTIFACT_KIND_SOURCE_ARCHIVE")


def written() -> dict[str, Any]:
    made = make(Project.of_modules([shop]), artifact=ARTIFACT, code_version="c0ffee")
    manifest: dict[str, Any] = json.loads(canonical.text(made.manifest))
    return manifest


def test_manifest_matches_the_definitions() -> None:
    manifest = written()
    assets = {each["key"]: each for each in manifest["assets"]}
    entry_point = {"module": "tests.manifest.shop", "function": "orders"}
    assert assets["raw/orders"] == {
        "key": "raw/orders",
        "description": "Orders of a day.",
        "owners": ["ann@example.com"],
        "tags": {"team": "core"},
        "dependencies": [{"upstream": "raw/events", "parameter": "events"}],
        "partitions": {
            "dimensions": [
                {
                    "name": "day",
                    "time": {"grain": "TIME_GRAIN_DAY", "time_zone": "Europe/Berlin", "start": "2026-01-01"},
                }
            ]
        },
        "checks": [
            {"name": "row_count", "severity": "SEVERITY_CRITICAL", "row_count": {"min": "1"}},
            {
                "name": "schema",
                "schema": {
                    "columns": [
                        {"name": "id", "type": "int64"},
                        {"name": "note", "type": "string", "nullable": True},
                    ]
                },
            },
        ],
        "quarantine": True,
        "retry": {
            "max_attempts": 5,
            "backoff": "BACKOFF_LINEAR",
            "initial_delay": "10s",
            "retry_on_categories": ["ERROR_CATEGORY_TRANSIENT"],
            "retry_on_types": ["ConnectionError"],
            "never_on_types": ["ValueError"],
        },
        "timeouts": {"execution": "5400s"},
        "resources": {"cpu_millicores": "500", "memory_bytes": "1073741824", "capabilities": ["duckdb"]},
        "code": {"entry_point": entry_point},
        "config_json": '{"currency":"€","rate":0.5}',
        "secrets": [{"name": "SHOP_KEY", "provider": "env", "path": "SHOP_KEY"}],
        "io": "parquet",
    }
    window = {"upstream": "day", "downstream": "day", "window": {"start_offset": -6}}
    revenue = assets["marts/revenue"]
    assert revenue["dependencies"] == [
        {"upstream": "raw/orders", "parameter": "orders", "mapping": {"dimensions": [window]}}
    ]
    assert revenue["automation"] == {
        "all_of": {"conditions": [{"upstream_updated": True}, {"negated": {"cron": {"cron": "0 6 * * *"}}}]}
    }
    assert [each["name"] for each in revenue["checks"]] == ["not_negative"]
    assert assets["marts/files"]["dependencies"] == [
        {"upstream": "marts/revenue", "mapping": {"dimensions": [{"upstream": "day", "latest": 3}]}}
    ]
    assert assets["marts/parsed"]["dependencies"] == [{"upstream": "marts/files", "parameter": "file", "mapped": True}]
    assert (assets["marts/parsed"]["isolated"], "isolated" in revenue) == (True, False)
    assert assets["marts/high"] == {"key": "marts/high", "made_by": "marts/low"}
    assert manifest["schedules"] == [
        {
            "name": "nightly",
            "cron": "0 6 * * *",
            "time_zone": "Europe/Berlin",
            "overlap": "OVERLAP_POLICY_BOTH",
            "catch_up_max_ticks": 0,
            "run": {"selection": ["+marts/revenue"], "partitions": {"latest": 2}, "labels": {"by": "clock"}},
        }
    ]
    assert [each["name"] for each in manifest["sensors"]] == ["finished", "new_files"]


def test_order_and_duplicates_do_not_change_the_manifest() -> None:
    definitions: list[Definition] = [each for each in vars(shop).values() if isinstance(each, KINDS)]
    one = make(Project.of(definitions), artifact=ARTIFACT).manifest
    other = make(Project.of([*reversed(definitions), *definitions]), artifact=ARTIFACT).manifest
    assert canonical.digest(one) == canonical.digest(other)
    assert one == other


def faults(*definitions: Definition, importable: bool = False) -> list[tuple[str, str, int]]:
    """Subject, text and line of each fault."""
    with pytest.raises(ManifestInvalid) as raised:
        make(Project.of(definitions), artifact=ARTIFACT, importable=importable)
    reported = []
    for fault in raised.value.faults:
        assert fault.location
        assert fault.location.file == __file__
        assert str(fault).startswith(f"{fault.location}: {fault.subject}: ")
        reported.append((fault.subject, fault.sentence, fault.location.line))
    return reported


def line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_unknown_parameters_are_reported_with_location() -> None:
    @asset
    def orders() -> int:
        return 1

    @asset(tags={"unknown": "parameter"})
    def clean(ordrs: int) -> int:
        return ordrs

    sentence = (
        "the parameter `ordrs` names no asset; did you mean `orders`?; name its asset in deps, or give it a default"
    )
    assert faults(orders, clean) == [("default/clean", sentence, line_of('@asset(tags={"unknown": "parameter"})'))]


def test_parameters_prefer_their_own_namespace() -> None:
    def orders() -> int:
        return 1

    def clean(orders: int) -> int:
        return orders

    makers = [asset(namespace=namespace)(orders) for namespace in ("a", "b")]
    (near, *_) = make(Project.of([*makers, asset(namespace="b")(clean)]), artifact=ARTIFACT, importable=False)
    (reader,) = [each for each in near.assets if each.key == "b/clean"]
    assert [each.upstream for each in reader.dependencies] == ["b/orders"]
    ((_, sentence, _),) = faults(*makers, asset(namespace="c")(clean))
    assert sentence == "the parameter `orders` may mean a/orders, b/orders; say which in deps"


def test_deps_must_be_parameters_and_assets() -> None:
    def clean(orders: int) -> int:
        return orders

    wrong: list[tuple[Any, str]] = [
        ({"order": "a/x"}, "deps names `order`, which is not a parameter of the function; did you mean `orders`?"),
        ({"orders": 5}, "5 names no asset"),
        ("a/orders", "deps is one text"),
        (["a/orders", "b/orders"], "the parameter `orders` may mean a/orders, b/orders; write deps={'orders': …}"),
        ({"orders": "a/orders"}, "there is no asset `a/orders` in the manifest"),
    ]
    for deps, part in wrong:
        ((_, sentence, _),) = faults(asset(deps=deps)(clean))
        assert part in sentence


def test_positional_only_parameters_are_refused() -> None:
    def orders() -> int:
        return 1

    def clean(orders: int, /) -> int:
        return orders

    ((_, sentence, _),) = faults(asset(orders), asset(clean))
    assert sentence == "the parameter `orders` is positional-only; remove the / from the function"


def test_single_value_is_accepted_as_a_list() -> None:
    @asset(owners="me", retry_on="transient", retry=Retry(on=KeyError), resources=servo.Resources(capabilities="gpu"))
    def orders() -> int:
        return 1

    events = servo.source("events", owners="them")
    manifest = make(Project.of([orders, events]), artifact=ARTIFACT, importable=False).manifest
    theirs, mine = json.loads(canonical.text(manifest))["assets"]
    assert (theirs["owners"], mine["owners"], mine["resources"]) == (["them"], ["me"], {"capabilities": ["gpu"]})
    assert mine["retry"] == {"retry_on_categories": ["ERROR_CATEGORY_TRANSIENT"], "retry_on_types": ["KeyError"]}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"checks": servo.checks.unique("id")},
            "checks is one Check; write a list of checks and functions with @check",
        ),
        ({"checks": ["unique"]}, "checks holds one text; write a list of checks and functions with @check"),
        ({"checks": None}, "checks is None; write a list of checks and functions with @check"),
        ({"secrets": servo.Secret.env("KEY")}, "secrets is one Secret; write a list of secrets"),
        ({"secrets": ["hunter2"]}, "secrets holds one text; write a list of secrets"),
        ({"deps": shop.orders}, "deps is one Asset; write a list, or a mapping from parameter to asset"),
        ({"deps": servo.In("a/b")}, "deps is one In; write a list, or a mapping from parameter to asset"),
        ({"tags": "x"}, "tags is one text; write a mapping from text to text"),
        ({"tags": ["x"]}, "tags is one list; write a mapping from text to text"),
        ({"owners": 5}, "owners is one int; write a list of texts"),
        ({"owners": [None]}, "owners holds None; write a list of texts"),
        (
            {"retry_on": 5},
            "retry_on is one int; write a list of categories, exception classes and their names",
        ),
    ],
)
def test_non_list_arguments_are_reported_with_location(options: Any, sentence: str) -> None:
    @asset(**options)
    def made() -> int:
        return 1

    @asset(tags={"after": "the wrong one"})
    def after(made: int, ghost: int) -> int:
        return made + ghost

    (wrong, other) = faults(made, after)
    assert wrong == ("default/made", sentence, line_of("@asset(**options)"))
    assert (other[0], "`ghost` names no asset" in other[1]) == ("default/after", True)
    with pytest.raises(ManifestInvalid):
        servo.materialize([made])


def test_sensor_parts_must_be_lists() -> None:
    def poll(cursor: str) -> servo.SensorResult:
        return servo.SensorResult(cursor)

    secrets: Any = servo.Secret.env("KEY")
    wrong: list[tuple[Definition, str]] = [
        (servo.Sensor("s", servo.Activity("raw/orders"), servo.Run("*")), "assets is one text; write a list of assets"),
        (servo.sensor(secrets=secrets)(poll), "secrets is one Secret; write a list of secrets"),
    ]
    for definition, sentence in wrong:
        ((_, reported, _),) = faults(definition)
        assert reported == sentence


ODD: list[Any] = [
    *(None, True, -1, 0.5, math.inf, math.nan, 2**70, "x", "", "\ud800", b"x", int, object(), len),
    *([], [None], ["x"], [[]], {}, {"x": None}, {5: 5}, {"x": ["y"]}, shop.orders, shop, servo.Retry(attempts=2)),
]
DECORATORS: dict[Callable[..., Any], dict[str, Any]] = {
    asset: {},
    servo.multi_asset: {"outputs": ["one", "other"]},
    servo.check: {},
    servo.schedule: {"cron": "0 6 * * *"},
    servo.sensor: {},
    servo.source: {"name": "events"},
    servo.Output: {"key": servo.AssetKey("n", "one")},
    servo.Sensor: {"name": "s", "on": servo.Push("t"), "run": servo.Run("*")},
    servo.Webhook: {"secret": servo.Secret.env("K")},
    servo.Activity: {},
    servo.Run: {},
    servo.In: {"asset": "default/events"},
}


def options_of(decorator: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(decorator).parameters.values()
    named = [each.name for each in parameters if each.kind in (each.KEYWORD_ONLY, each.POSITIONAL_OR_KEYWORD)]
    more = AssetOptions.__annotations__ if decorator in (asset, servo.multi_asset) else ()
    return [*(name for name in named if name != "location"), *more]


def defined(decorator: Callable[..., Any], options: dict[str, Any]) -> Definition:
    """A definition with these options."""

    def written(**_: Any) -> Any:
        return servo.Run("*")

    made = decorator(**options)
    if isinstance(made, KINDS):
        return made
    if isinstance(made, servo.Output):
        return servo.multi_asset(outputs=[made])(written)
    if isinstance(made, servo.Webhook | servo.Activity):
        return servo.Sensor("s", made, servo.Run("*"))
    if isinstance(made, servo.Run):
        return servo.Sensor("s", servo.Push("t"), made)
    if isinstance(made, servo.In):
        return asset(deps={"events": made})(written)
    definition: Definition = made(written)
    return definition


@pytest.mark.parametrize("decorator", DECORATORS)
def test_wrong_arguments_never_crash_servo(decorator: Callable[..., Any]) -> None:
    events = servo.source("events")
    for option in options_of(decorator):
        for odd in ODD:
            try:
                definition = defined(decorator, {**DECORATORS[decorator], option: odd})
            except InvalidValue:
                continue
            with contextlib.suppress(ManifestInvalid):
                make(Project.of([events, definition]), artifact=ARTIFACT, importable=False)


def test_planner_faults_have_file_and_line() -> None:
    @asset(deps=["default/second"])
    def first() -> int:
        return 1

    @asset(deps=[first], pool="\0")
    def second() -> int:
        return 2

    assert faults(first, second) == [
        ("default/second", "holds a control character; remove it", line_of('@asset(deps=[first], pool="\\0")')),
        (
            "default/first",
            "the dependencies form a cycle: default/first -> default/second -> default/first; drop one of them",
            line_of('@asset(deps=["default/second"])'),
        ),
    ]


def test_duplicate_key_names_both_locations() -> None:
    @asset(name="x", tags={"which": "first"})
    def one() -> int:
        return 1

    two = servo.source("x", tags={"which": "second"})
    first = line_of('@asset(name="x", tags={"which": "first"})')
    ((subject, sentence, line),) = faults(one, two)
    assert (subject, line) == ("default/x", line_of('servo.source("x", tags={"which": "second"})'))
    assert sentence.endswith(f"test_make.py:{first} already; keep one")


def test_checks_of_unknown_assets_are_faults() -> None:
    @servo.check("default/ghost")
    def fine() -> bool:
        return True

    assert [sentence for _, sentence, _ in faults(fine)] == ["there is no asset `default/ghost` to check"]


def test_unimportable_functions_are_refused() -> None:
    @asset
    def inside() -> int:
        return 1

    hidden = [asset(name="hidden")(written)]
    shadowed = asset(name="other")(test_checks_of_unknown_assets_are_faults)
    shadowed.function = lambda: None
    shadowed.function.__qualname__, shadowed.function.__module__ = "line_of", __name__
    sentences = [sentence for _, sentence, _ in faults(inside, shadowed, *hidden, importable=True)]
    parts = ["is not at the top of its module", "refers to something else", "refers to something else"]
    assert [part in sentence for part, sentence in zip(parts, sentences, strict=True)] == [True] * 3


def test_non_functions_are_refused_with_file_and_line() -> None:
    odd: Any = functools.partial(print, 1)
    for decorator in (asset, asset(), servo.multi_asset(outputs=["a"]), servo.check("n/a"), servo.sensor()):
        with pytest.raises(InvalidValue, match=r"test_make.py:[0-9]+: @\w+ takes a function, and this is a partial"):
            decorator(odd)
