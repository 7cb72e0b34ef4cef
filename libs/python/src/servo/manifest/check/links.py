"""Dependencies between assets, and assets that are made together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from servo.model import declared_mapping
from servo.model.declared_mapping import DeclaredRule, NoMapping
from servo.model.mapping import PartitionMapping
from servo.model.partitioning import Partitioning
from servo.v1 import manifest_pb2, partition_pb2

from . import values
from .context import Faults, Link, Names

_DEPENDENCIES_MAX = 10_000
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHOWN_CHARS_MAX = 128


def check(
    manifest: manifest_pb2.Manifest, names: Names, partitionings: Sequence[Partitioning | None], faults: Faults
) -> tuple[list[int], list[list[Link]]]:
    """The asset whose task makes each one, and the links of each."""
    reader = _Reader(manifest, names, partitionings, faults)
    indices = range(len(manifest.assets))
    return [reader.maker(index) for index in indices], [reader.links(index) for index in indices]


@dataclass(frozen=True, slots=True)
class _Reader:
    manifest: manifest_pb2.Manifest
    names: Names
    partitionings: Sequence[Partitioning | None]
    faults: Faults

    def maker(self, index: int) -> int:
        asset = self.manifest.assets[index]
        path = f"assets[{index}].made_by"
        maker = self._find(path, asset.made_by) if asset.made_by else None
        if maker is None:
            return index
        made_by = self.manifest.assets[maker]
        if asset.source:
            self.faults.add(path, "a source is made elsewhere; leave this empty")
        elif made_by.source or made_by.made_by:
            self.faults.add(path, f"`{asset.made_by}` has no task of its own; name the asset that has")
        elif asset.checks:
            self.faults.add(f"assets[{index}].checks", f"run in the task of `{asset.made_by}`; define them there")
        elif self.partitionings[maker] != self.partitionings[index]:
            self.faults.add(path, f"`{asset.made_by}` is partitioned differently; give both the same partitions")
        return maker

    def links(self, index: int) -> list[Link]:
        asset = self.manifest.assets[index]
        at = f"assets[{index}].dependencies"
        if asset.source and asset.dependencies:
            self.faults.add(at, "a source is made elsewhere; leave its dependencies out")
        if len(asset.dependencies) > _DEPENDENCIES_MAX:
            self.faults.add(at, f"has more than {_DEPENDENCIES_MAX} entries; group some of them")
            return []
        if sum(dependency.mapped for dependency in asset.dependencies) > 1:
            self.faults.add(at, "more than one is mapped; an asset runs over the items of one upstream")
        parameters: set[str] = set()
        upstreams: set[tuple[str, str]] = set()
        links = []
        for place, dependency in enumerate(asset.dependencies):
            path = f"{at}[{place}]"
            pair = (dependency.upstream, dependency.parameter)
            if pair in upstreams:
                self.faults.add(path, f"`{dependency.upstream}` appears twice; keep one")
            elif dependency.parameter and dependency.parameter in parameters:
                self.faults.add(f"{path}.parameter", "is the name of another input too; keep one")
            upstreams.add(pair)
            parameters.add(dependency.parameter)
            link = self._link(index, path, dependency)
            if link is not None:
                links.append(link)
        return links

    def _link(self, index: int, path: str, dependency: manifest_pb2.Dependency) -> Link | None:
        _check_parameter(self.faults, f"{path}.parameter", dependency.parameter)
        upstream = self._find(f"{path}.upstream", dependency.upstream)
        if upstream is None:
            return None
        if dependency.mapped and not self.manifest.assets[upstream].yields_items:
            self.faults.add(f"{path}.mapped", f"`{dependency.upstream}` yields no items")
        mapping = self._mapping(index, upstream, f"{path}.mapping", dependency)
        return Link(upstream, mapping, dependency.parameter, dependency.optional, dependency.mapped)

    def _mapping(
        self, index: int, upstream: int, path: str, dependency: manifest_pb2.Dependency
    ) -> PartitionMapping | None:
        given = dependency.mapping.dimensions
        up = self.partitionings[upstream]
        if up is None:
            # An invalid partitioning was reported before.
            if given and not self.manifest.assets[upstream].HasField("partitions"):
                self.faults.add(path, f"`{dependency.upstream}` is one undivided piece; drop the mapping")
            return None
        rules = []
        for place, each in enumerate(given):
            rule = _declared_rule(each)
            if rule is None:
                self.faults.add(f"{path}.dimensions[{place}]", "has no rule; give it one")
            else:
                rules.append(rule)
        try:
            return declared_mapping.resolve(up, self.partitionings[index], rules)
        except NoMapping as wrong:
            for fault in wrong.faults:
                self.faults.add(f"{path}.dimensions[{fault.index}].{fault.field}", fault.sentence)
            return None

    def _find(self, path: str, key: str) -> int | None:
        found = self.names.get(key)
        if found is None:
            offer = self.faults.offer(key, self.names)
            self.faults.add(path, f"there is no asset `{key[:_SHOWN_CHARS_MAX]}` in the manifest{offer}")
        return found


def _check_parameter(faults: Faults, path: str, text: str) -> None:
    if text and (len(text) > values.NAME_BYTES_MAX or not _PARAMETER.fullmatch(text)):
        faults.add(path, "is not a parameter name: write letters, digits and `_`, not beginning with a digit")


def _declared_rule(given: partition_pb2.DimensionMapping) -> DeclaredRule | None:
    """A rule whose bool is false counts as no rule."""
    rule: (
        declared_mapping.Identity
        | declared_mapping.Window
        | declared_mapping.All
        | declared_mapping.Latest
        | declared_mapping.Table
    )
    match given.WhichOneof("rule"):
        case "identity" if given.identity:
            rule = declared_mapping.Identity()
        case "all" if given.all:
            rule = declared_mapping.All()
        case "window":
            rule = declared_mapping.Window(given.window.start_offset, given.window.end_offset)
        case "latest":
            rule = declared_mapping.Latest(given.latest)
        case "table":
            rule = declared_mapping.Table(
                tuple((entry.downstream, tuple(entry.upstream)) for entry in given.table.entries)
            )
        case _:
            return None
    return DeclaredRule(given.upstream, given.downstream, rule)
