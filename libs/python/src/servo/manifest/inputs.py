"""The dependencies of each asset: its parameters and its ``deps``, resolved to keys."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from servo.define.asset import CONTEXT, Asset, as_input
from servo.define.dependencies import In
from servo.define.validation import shown
from servo.errors import InvalidValue
from servo.model.asset_key import AssetKey
from servo.model.suggestions import did_you_mean

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Names:
    """Assets by the last part of their keys."""

    def __init__(self, keys: Iterable[AssetKey]) -> None:
        self._by_name: dict[str, list[AssetKey]] = defaultdict(list)
        for key in keys:
            self._by_name[key.name].append(key)

    def find(self, namespace: str, name: str) -> AssetKey:
        """Finds an asset in the same namespace, or the only one of that name."""
        found = self._by_name.get(name, [])
        here = [key for key in found if key.namespace == namespace]
        if len(here or found) == 1:
            return (here or found)[0]
        if found:
            several = ", ".join(sorted(map(str, found)))
            raise InvalidValue(f"the parameter `{name}` may mean {several}; say which in deps")
        raise InvalidValue(
            f"the parameter `{name}` names no asset{did_you_mean(name, self._by_name)}; name its asset in deps, or "
            "give it a default"
        )


def inputs(asset: Asset[..., Any], names: Names) -> list[tuple[str, str, In]]:
    """Parameter (empty for dependencies without data), key of the dependency, and its settings."""
    parameters = {name: each for name, each in asset.parameters.items() if name != CONTEXT}
    given, order = declared(asset)
    for name, parameter in parameters.items():
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise InvalidValue(f"the parameter `{name}` is positional-only; remove the / from the function")
        if name in given or parameter.default is not inspect.Parameter.empty:
            continue
        if parameter.kind in _VARIADIC:
            continue
        key = names.find(asset.key.namespace, name)
        given[name] = In(str(key))
    read = [(name, each.key, each) for name, each in given.items()]
    return sorted([*read, *(("", each.key, each) for each in order)], key=lambda each: (each[1], each[0]))


def declared(asset: Asset[..., Any]) -> tuple[dict[str, In], list[In]]:
    """The ``deps`` by parameter, and those that only define an order."""
    deps, parameters = asset.settings.deps, asset.parameters
    if isinstance(deps, Mapping):
        takes_any = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
        for name in deps:
            if not isinstance(name, str):
                raise InvalidValue(f"deps names {shown(name)}; write the name of a parameter")
            if name not in parameters and not takes_any:
                hint = did_you_mean(name, parameters)
                raise InvalidValue(f"deps names `{name}`, which is not a parameter of the function{hint}")
        return {name: as_input(each) for name, each in deps.items()}, []
    if isinstance(deps, str) or not isinstance(deps, Sequence | Set):
        kind = "text" if isinstance(deps, str) else type(deps).__name__
        raise InvalidValue(f"deps is one {kind}; write a list, or a mapping from parameter to asset")
    # An asset in the list with the name of a parameter is that parameter's input.
    listed = [as_input(each) for each in deps]
    read = {each.key.rpartition("/")[2]: each for each in listed}
    named = {name: each for name, each in read.items() if name in parameters}
    for name, each in named.items():
        others = [other.key for other in listed if other.key.rpartition("/")[2] == name and other.key != each.key]
        if others:
            several = ", ".join(sorted({*others, each.key}))
            raise InvalidValue(f"the parameter `{name}` may mean {several}; write deps={{{name!r}: …}} to say which")
    return named, [each for each in listed if each not in named.values()]
