"""``servo.materialize``: a graph of assets, run in this process without a server.

The planner's choice of partitions, the scheduler's order, retries, skips and fan-out, the worker's way to call a
function; only the store is a dictionary.
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
    """Runs what ``definitions`` (assets, or modules full of them) define, as far as ``selection`` says.

    ``inputs`` stand for what is not run here: a value, or a function from partition to value; one for what runs, or for
    what nothing reads, is refused. ``secrets`` are values by
    name, of which each asset gets those that it names. Retries follow each other at once unless ``sleep`` is given.
    With ``raise_on_error`` a failed run raises :class:`~servo.local.result.RunFailed`; the result is in it.

    Values go through the formats that a worker stores them in, and items through JSON: each reader has its own. A
    function with a ``timeout`` runs in a thread; one that takes longer fails as on a worker, but cannot be ended: what
    it still does, it does beside the rest. Memory limits and processes are a worker's alone.
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
    """A value that would not be used is a test that does not test what it says. Of what has partitions, it may stand
    for those that are not run."""
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
    """A name without its namespace means the asset of that name."""
    keys: dict[str, AssetKey] = {source.key.name: source.key for source in project.sources}
    keys.update({output.key.name: output.key for asset in project.assets for output in asset.outputs})
    return {key if "/" in key else str(keys.get(key, key)): value for key, value in given.items()}
