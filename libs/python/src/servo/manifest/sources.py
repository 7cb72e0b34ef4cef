"""Sources that a function reads through a parameter: a user's class loads them, because no version is stored."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from servo.define.asset import Asset, Source
from servo.define.dependencies import In
from servo.define.io import is_custom
from servo.errors import InvalidValue

from .entry_points import EntryPoints


def check(
    asset: Asset[..., Any],
    read: Iterable[tuple[str, str, In]],
    sources: Mapping[str, Source],
    entry_points: EntryPoints,
) -> None:
    """Refuses sources that would fail on a worker."""
    module, _ = entry_points.of_definition(asset)
    for parameter, key, declared_input in read:
        if parameter and key in sources and not declared_input.optional:
            _check_one(parameter, key, sources[key], entry_points)
            if upstream(module, declared_input, key) is not sources[key]:
                raise InvalidValue(
                    f"the parameter `{parameter}` reads the source `{key}`, which a worker looks for in `{module}`; "
                    "import it there, or give the source itself in deps"
                )


def upstream(module: str, declared_input: In, key: str) -> Asset[..., Any] | Source | None:
    """The definition that a function of this module reads, if the code has it."""
    if isinstance(declared_input.asset, Asset | Source):
        return declared_input.asset
    known = vars(sys.modules[module]).values() if module in sys.modules else ()
    return next((each for each in known if isinstance(each, Asset | Source) and _makes(each, key)), None)


def _makes(definition: Asset[..., Any] | Source, key: str) -> bool:
    outputs = definition.outputs if isinstance(definition, Asset) else (definition,)
    return any(str(output.key) == key for output in outputs)


def _check_one(parameter: str, key: str, source: Source, entry_points: EntryPoints) -> None:
    if not is_custom(source.io):
        raise InvalidValue(
            f"the parameter `{parameter}` reads the source `{key}`, which Servo does not store; give the source "
            "io=… a class with load(partition), or name it in deps=[…] without a parameter and read it in the function"
        )
    entry_points.io(source.io, "load")
