"""A checked manifest with indexes for planning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from servo.errors import InvalidValue
from servo.manifest.check import Checked, Link
from servo.model import selection
from servo.model.graph import order
from servo.model.partitioning import Partitioning


@dataclass(frozen=True, slots=True)
class Deployed:
    checked: Checked
    # For each asset with a task, the assets that the task makes, itself first.
    members: dict[int, list[int]]
    # The assets with tasks, in topological order.
    order: list[int]

    @classmethod
    def of(cls, checked: Checked) -> Deployed:
        members: dict[int, list[int]] = {}
        for asset, maker in enumerate(checked.makers):
            if not checked.manifest.assets[asset].source:
                members.setdefault(maker, [maker])
                if asset != maker:
                    members[maker].append(asset)
        deployed = cls(checked, members, [])
        deployed.order.extend(deployed._in_order())
        return deployed

    @property
    def partitionings(self) -> Sequence[Partitioning | None]:
        return self.checked.partitionings

    @property
    def makers(self) -> Sequence[int]:
        return self.checked.makers

    def name(self, asset: int) -> str:
        return self.checked.manifest.assets[asset].key

    def task_links(self, maker: int) -> Iterator[Link]:
        """All dependencies of this asset's task."""
        for member in self.members.get(maker, ()):
            yield from self.checked.links[member]

    def select(self, expressions: Sequence[str]) -> list[int]:
        """The assets whose tasks are selected. Sources have none."""
        if not expressions:
            raise InvalidValue("the selection is empty; name assets, or `*` for all")
        assets = self.checked.manifest.assets
        upstream = {asset.key: self._upstream(index) for index, asset in enumerate(assets)}
        downstream: dict[str, list[str]] = {asset.key: [] for asset in assets}
        for key, read in upstream.items():
            for name in read:
                downstream[name].append(key)
        graph = selection.Graph({asset.key: dict(asset.tags) for asset in assets}, upstream, downstream)
        names = self.checked.names
        selected = [names[key] for key in selection.select(selection.parse(expressions), graph)]
        makers = sorted({self.makers[asset] for asset in selected if not assets[asset].source})
        if not makers:
            raise InvalidValue("the selection means no asset that Servo runs")
        return makers

    def _upstream(self, asset: int) -> list[str]:
        """An asset that another's task makes has that task's dependencies in addition to its own."""
        links = self.checked.links[asset] or self.checked.links[self.makers[asset]]
        return sorted({self.name(link.upstream) for link in links})

    def _in_order(self) -> list[int]:
        upstream = {}
        for maker in self.members:
            before = (self.makers[link.upstream] for link in self.task_links(maker))
            upstream[self.name(maker)] = [self.name(each) for each in before if each in self.members]
        return [self.checked.names[key] for key in order(upstream)]
