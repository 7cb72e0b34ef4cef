"""Sources for inputs that are read but not run: assets that definitions refer to, and given inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

from servo.define.asset import DEFAULT_NAMESPACE, Asset, Output, Source
from servo.define.dependencies import In
from servo.define.location import of_caller
from servo.manifest.project import Definition
from servo.model.asset_key import AssetKey

Named = Asset[..., Any] | Source | Output


def implicit_sources(listed: Iterable[Definition], given: Iterable[str | Named]) -> Iterator[Source]:
    listed, given = list(listed), list(given)
    known = {str(key) for each in listed for key in _keys(each)}
    names = {key.rpartition("/")[2] for key in known}
    objects = [each for each in given if not isinstance(each, str)]
    for upstream in [*_named(listed), *objects]:
        if str(upstream.key) not in known:
            known.add(str(upstream.key))
            partitions = upstream.settings.partitions if isinstance(upstream, Asset) else None
            if isinstance(upstream, Source):
                yield upstream
            else:
                yield Source(upstream.key, partitions=partitions, location=of_caller())
    for name in (each for each in given if isinstance(each, str)):
        key = AssetKey.parse(name) if "/" in name else AssetKey(DEFAULT_NAMESPACE, name)
        is_known = str(key) in known if "/" in name else name in names
        if not is_known:
            yield Source(key, location=of_caller())


def _keys(definition: Definition) -> list[AssetKey]:
    if isinstance(definition, Asset):
        return [output.key for output in definition.outputs]
    return [definition.key] if isinstance(definition, Source) else []


def _named(listed: Iterable[Definition]) -> Iterator[Named]:
    """The assets that definitions refer to as objects rather than by key."""
    for each in listed:
        if not isinstance(each, Asset):
            continue
        deps = each.settings.deps
        # Invalid values are reported later with all other faults.
        listed = deps.values() if isinstance(deps, Mapping) else deps if isinstance(deps, Sequence | Set) else ()
        for dependency in listed:
            upstream = dependency.asset if isinstance(dependency, In) else dependency
            if isinstance(upstream, Asset | Source | Output):
                yield upstream
