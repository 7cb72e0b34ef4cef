"""Expands a request into tasks in order, like ``services/planner/src/core/plan``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from servo.define.run import PartitionChoice
from servo.errors import InvalidValue
from servo.manifest.check import Link
from servo.model.asset_key import AssetKey
from servo.model.graph import order
from servo.model.limits import TASKS_PER_RUN_MAX
from servo.model.partition_key import PartitionKey
from servo.model.partitioning import Moment
from servo.model.task_key import TaskKey

from .choose import choose
from .deployed import Deployed


@dataclass(frozen=True, slots=True)
class Input:
    asset_key: str
    parameter: str
    # None for an unpartitioned asset.
    partitions: tuple[PartitionKey, ...] | None
    # Whether the function gets one value instead of one per partition.
    single: bool
    optional: bool
    mapped: bool


@dataclass(frozen=True, slots=True)
class PlannedTask:
    key: TaskKey
    asset: int
    # Ordinals of the tasks that must succeed first.
    upstream: tuple[int, ...]
    inputs: tuple[Input, ...]
    mapped_over: int | None


def plan(
    deployed: Deployed, expressions: Sequence[str], partitions: PartitionChoice | None, moment: Moment
) -> list[PlannedTask]:
    """The tasks in topological order, ties broken by task key."""
    chosen = choose(deployed, deployed.select(expressions), partitions, moment)
    count = sum(len(keys) for keys in chosen.values())
    if count > TASKS_PER_RUN_MAX:
        raise InvalidValue(
            f"the selection means {count} tasks, more than the {TASKS_PER_RUN_MAX} of a run; select less"
        )
    if not count:
        raise InvalidValue("the selection means no task: none of its partitions exists")
    places = {(asset, key): str(_task_key(deployed, asset, key)) for asset, keys in chosen.items() for key in keys}
    drafts = {places[asset, key]: _Draft(deployed, asset, key, moment, places) for asset, key in places}
    upstream = {name: draft.upstream for name, draft in drafts.items()}
    ordinals = {name: ordinal for ordinal, name in enumerate(order(upstream))}
    return [drafts[name].task(ordinals) for name in ordinals]


class _Draft:
    """A task that refers to others by key."""

    def __init__(
        self,
        deployed: Deployed,
        asset: int,
        partition: PartitionKey | None,
        moment: Moment,
        places: dict[tuple[int, PartitionKey | None], str],
    ) -> None:
        self.deployed, self.asset, self.partition, self.moment, self.places = deployed, asset, partition, moment, places
        self.key = _task_key(deployed, asset, partition)
        self.upstream: set[str] = set()
        self.inputs: list[Input] = []
        self.mapped_over: str | None = None
        for link in deployed.task_links(asset):
            self._link(link)

    def task(self, ordinals: dict[str, int]) -> PlannedTask:
        before = tuple(sorted(ordinals[name] for name in self.upstream))
        over = None if self.mapped_over is None else ordinals[self.mapped_over]
        return PlannedTask(self.key, self.asset, before, tuple(self.inputs), over)

    def _link(self, link: Link) -> None:
        keys = self._read(link)
        maker = self.deployed.makers[link.upstream]
        wanted: Sequence[PartitionKey | None] = [None] if keys is None else keys
        before = [self.places[maker, key] for key in wanted if (maker, key) in self.places]
        if link.mapped:
            self.mapped_over = self._yielding(link, before)
        self.upstream.update(before)
        if link.parameter:
            partitions = None if keys is None else tuple(keys)
            name = self.deployed.name(link.upstream)
            self.inputs.append(
                Input(name, link.parameter, partitions, self._is_single(link), link.optional, link.mapped)
            )

    def _read(self, link: Link) -> list[PartitionKey] | None:
        """The partitions that a link reads; ``None`` for an unpartitioned asset."""
        up = self.deployed.partitionings[link.upstream]
        if link.mapping is None or up is None:
            return None
        return link.mapping.upstream(up, self.deployed.partitionings[self.asset], self.partition, self.moment)

    def _is_single(self, link: Link) -> bool:
        up = self.deployed.partitionings[link.upstream]
        return (
            link.mapping is None
            or up is None
            or link.mapping.is_one_to_one(up, self.deployed.partitionings[self.asset])
        )

    def _yielding(self, link: Link, before: list[str]) -> str:
        upstream = self.deployed.name(link.upstream)
        if not before:
            raise InvalidValue(
                f"`{self.key}` runs over the items of `{upstream}`, which must run with it; select `1+` of it"
            )
        if len(before) > 1:
            raise InvalidValue(f"`{self.key}` would run over the items of {len(before)} partitions of `{upstream}`")
        return before[0]


def _task_key(deployed: Deployed, asset: int, partition: PartitionKey | None) -> TaskKey:
    return TaskKey(AssetKey.parse(deployed.name(asset)), partition)
