"""Chooses the partitions of the selected assets for a run, like
``services/planner/src/core/partition_selection.rs``.

The caller's partitions apply to every asset that they fit. The others follow through their
mappings: first upwards, where an asset makes what its selected readers read, then downwards, where
an asset makes the partitions that read something made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from servo.define.run import AllPartitions, Keys, LatestPartitions, PartitionChoice, Slices
from servo.errors import InvalidValue
from servo.model.partition_key import PartitionKey
from servo.model.partitioning import Moment, Partitioning

from .deployed import Deployed

Chosen = dict[int, list[PartitionKey | None]]


def choose(deployed: Deployed, makers: Sequence[int], wanted: PartitionChoice | None, moment: Moment) -> Chosen:
    """``makers`` are the assets whose tasks run."""
    partitioning = [maker for maker in makers if deployed.partitionings[maker] is not None]
    chosen: Chosen = {maker: [None] for maker in makers if deployed.partitionings[maker] is None}
    if not partitioning:
        if wanted is not None:
            raise InvalidValue("none of the selected assets has partitions; leave this out")
        return chosen
    if wanted is None:
        raise InvalidValue(f"`{deployed.name(partitioning[0])}` has partitions; say which are meant")
    for maker, keys in _Chooser(deployed, moment, partitioning).run(wanted).items():
        chosen[maker] = sorted(keys, key=str)
    return chosen


@dataclass(frozen=True, slots=True)
class _Chooser:
    deployed: Deployed
    moment: Moment
    makers: Sequence[int]

    def run(self, wanted: PartitionChoice) -> dict[int, set[PartitionKey]]:
        chosen, refused = self._by_keys(wanted) if isinstance(wanted, Keys) else self._by_products(wanted)
        places = [asset for asset in self.deployed.order if asset in set(self.makers)]
        for asset in reversed(places):
            if asset not in chosen:
                read = self._read_by_readers(asset, chosen)
                if read is not None:
                    chosen[asset] = read
        for asset in places:
            if asset not in chosen:
                readers = self._readers_of_made(asset, chosen)
                if readers is not None:
                    chosen[asset] = readers
        for asset in self.makers:
            if asset not in chosen:
                raise refused.get(asset) or InvalidValue(
                    f"none of these is a partition of `{self.deployed.name(asset)}`, and none leads to one; name some "
                    "or leave it out"
                )
        return chosen

    def _by_keys(self, wanted: Keys) -> tuple[dict[int, set[PartitionKey]], dict[int, InvalidValue]]:
        """Every key must fit at least one asset."""
        chosen: dict[int, set[PartitionKey]] = {}
        for key in map(PartitionKey.parse, wanted.keys):
            refusal: InvalidValue | None = None
            fits = False
            for asset, partitioning in self._partitionings():
                try:
                    partitioning.check(key, self.moment)
                except InvalidValue as fault:
                    # A fault of a key with the right shape is more helpful than one about the
                    # shape.
                    refusal = fault if refusal is None or partitioning.has_shape_of(key) else refusal
                else:
                    fits = True
                    chosen.setdefault(asset, set()).add(key)
            if not fits and refusal is not None:
                raise refusal
        return chosen, {}

    def _by_products(self, wanted: PartitionChoice) -> tuple[dict[int, set[PartitionKey]], dict[int, InvalidValue]]:
        chosen: dict[int, set[PartitionKey]] = {}
        refused: dict[int, InvalidValue] = {}
        for asset, partitioning in self._partitionings():
            try:
                chosen[asset] = set(_product(wanted, partitioning, self.moment))
            except InvalidValue as fault:
                refused[asset] = InvalidValue(f"`{self.deployed.name(asset)}`: {fault}")
        if refused and not chosen:
            raise next(iter(refused.values()))
        return chosen, refused

    def _read_by_readers(self, asset: int, chosen: dict[int, set[PartitionKey]]) -> set[PartitionKey] | None:
        """The partitions that selected readers of an asset read; ``None`` without such a reader."""
        up = self.deployed.partitionings[asset]
        read: set[PartitionKey] | None = None
        for reader, keys in chosen.items():
            down = self.deployed.partitionings[reader]
            for link in self.deployed.task_links(reader):
                if self.deployed.makers[link.upstream] != asset or link.mapping is None or up is None or down is None:
                    continue
                read = read if read is not None else set()
                for key in keys:
                    found = link.mapping.upstream(up, down, key, self.moment)
                    read.update(each for each in found if up.exists(each, self.moment))
        return read

    def _readers_of_made(self, asset: int, chosen: dict[int, set[PartitionKey]]) -> set[PartitionKey] | None:
        """The partitions of an asset that read something made; ``None`` if it reads everything or nothing of it."""
        down = self.deployed.partitionings[asset]
        readers: set[PartitionKey] | None = None
        for link in self.deployed.task_links(asset):
            upstream = self.deployed.makers[link.upstream]
            up = self.deployed.partitionings[upstream]
            if link.mapping is None or up is None or down is None:
                continue
            for key in chosen.get(upstream, ()):
                found = link.mapping.downstream(up, down, key, self.moment)
                if found is not None:
                    readers = (readers if readers is not None else set()) | set(found)
        return readers

    def _partitionings(self) -> list[tuple[int, Partitioning]]:
        pairs = [(asset, self.deployed.partitionings[asset]) for asset in self.makers]
        return [(asset, partitioning) for asset, partitioning in pairs if partitioning is not None]


def _product(wanted: PartitionChoice, partitioning: Partitioning, moment: Moment) -> list[PartitionKey]:
    match wanted:
        case AllPartitions():
            return partitioning.all(moment)
        case LatestPartitions(count):
            return partitioning.latest(count, moment)
        case Slices(slices):
            for name in slices:
                if name not in partitioning.names:
                    raise InvalidValue(f"there is no dimension `{name}`; there are {', '.join(partitioning.names)}")
            lists = []
            for dimension in partitioning.dimensions:
                each = slices.get(dimension.name)
                if each is None:
                    lists.append(dimension.existing(moment))
                elif each.values:
                    lists.append([dimension.known(text, moment) for text in dict.fromkeys(each.values)])
                else:
                    lists.append(dimension.between(each.start, each.end, moment))
            return partitioning.product(lists)
        case _:
            raise InvalidValue("keys are no product")
