"""``servo.materialize``: runs a graph of assets in this process, without a server.

Uses the planner's choice of partitions, the scheduler's order, retries, skips and fan-out, and the
worker's way to call a function; only the storage is a dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

from servo.define.asset import Asset, Output, Source, as_input
from servo.define.run import PartitionChoice, choice
from servo.define.validation import mapping, shown, words
from servo.errors import InvalidValue
from servo.manifest.make import make
from servo.manifest.project import KINDS, Definition, Project
from servo.model.asset_key import AssetKey
from servo.model.partition_key import PartitionKey
from servo.model.partitioning import Moment
from servo.model.suggestions import did_you_mean
from servo.v1 import code_pb2

from .deployed import Deployed
from .implicit_sources import implicit_sources
from .plan import PlannedTask, plan
from .result import MaterializeResult
from .runner import Runner

_NO_ARTIFACT = code_pb2.CodeArtifact(digest="0" * 64, kind="ARTIFACT_KIND_SOURCE_ARCHIVE")


def materialize(
    definitions: Iterable[Definition | ModuleType],
    *,
    partition: PartitionChoice | PartitionKey | str | Sequence[PartitionKey | str] | None = None,
    selection: str | Asset[..., Any] | Output | Sequence[str | Asset[..., Any] | Output] = "*",
    inputs: Mapping[str | Asset[..., Any] | Source | Output, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    secrets: Mapping[str, str] | None = None,
    partition_sets: Mapping[str, Sequence[str]] | None = None,
    now: datetime | None = None,
    sleep: Callable[[float], None] | None = None,
    raise_on_error: bool = True,
) -> MaterializeResult:
    """Runs ``definitions`` (assets, or modules that define them), limited to ``selection``.

    ``inputs`` are values of assets that are not run here: a value, or a function from partition to
    value. An input for an asset that runs, or that nothing reads, is refused. ``secrets`` are
    values by name; each asset gets those that it declares. Retries follow at once unless ``sleep``
    is given. With ``raise_on_error`` a failed run raises :class:`~servo.local.result.RunFailed`,
    which has the result.

    Values pass through the formats in which a worker stores them, and items through JSON, so each
    reader has its own copy. A function with a ``timeout`` runs in a thread; if it takes longer it
    fails as on a worker, but the thread cannot be ended and continues in the background. Memory
    limits and separate processes exist on workers only.
    """
    listed = list(_flat(definitions))
    project = Project.of([*listed, *implicit_sources(listed, inputs or ())])
    given = _full_keys({_key(asset): value for asset, value in (inputs or {}).items()}, project)
    now = now or datetime.now(UTC)
    made = make(project, artifact=_NO_ARTIFACT, importable=False)
    deployed = Deployed.of(made.checked)
    chosen = [selection] if isinstance(selection, str | Asset | Output) else list(selection)
    expressions = [as_input(each).key for each in chosen]
    sets = {name: words(f"partition_sets[{name!r}]", values) for name, values in (partition_sets or {}).items()}
    tasks = plan(deployed, expressions, choice(partition), Moment(int(now.timestamp()), sets))
    _check_inputs(given, deployed, tasks)
    given_config, given_secrets = mapping("config", config), mapping("secrets", secrets)
    runner = Runner(project, made.manifest, tasks, given, given_config, given_secrets, now, sleep)
    result = runner.run()
    if raise_on_error:
        result.raise_for_failure()
    return result


def _flat(definitions: Iterable[Definition | ModuleType]) -> Iterable[Definition]:
    if isinstance(definitions, (*KINDS, ModuleType, str)):
        raise InvalidValue(f"definitions is one {type(definitions).__name__}; write a list: materialize([…])")
    for each in definitions:
        if isinstance(each, ModuleType):
            yield from (value for value in vars(each).values() if isinstance(value, KINDS))
        elif isinstance(each, KINDS):
            yield each
        else:
            raise InvalidValue(f"definitions holds {shown(each)}; write assets, or modules that define them")


def _check_inputs(given: Mapping[str, Any], deployed: Deployed, tasks: Sequence[PlannedTask]) -> None:
    """Refuses unused values, because such a test would not test what it seems to. For a partitioned
    asset, a value may cover the partitions that are not run.
    """
    whole = {task.asset for task in tasks if deployed.partitionings[task.asset] is None}
    made = {deployed.name(member) for maker in whole for member in deployed.members[maker]}
    read = {deployed.name(link.upstream) for maker in deployed.members for link in deployed.task_links(maker)}
    for key in given:
        if key in made:
            raise InvalidValue(f"inputs gives `{key}`, which is run here; take it out of the definitions or selection")
        if key not in read:
            raise InvalidValue(f"inputs gives `{key}`, which nothing here reads{did_you_mean(key, read)}")


def _key(asset: str | Asset[..., Any] | Source | Output) -> str:
    return asset if isinstance(asset, str) else str(asset.key)


def _full_keys(given: Mapping[str, Any], project: Project) -> dict[str, Any]:
    """A name without namespace means the asset of that name."""
    keys: dict[str, AssetKey] = {source.key.name: source.key for source in project.sources}
    keys.update({output.key.name: output.key for asset in project.assets for output in asset.outputs})
    return {key if "/" in key else str(keys.get(key, key)): value for key, value in given.items()}
