"""Python and the planner must agree: equal digests, refusals and plans.

A sample in `make test`; `make sim` compares a thousand manifests and a thousand keys.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from random import Random

import pytest

from servo.client.errors import CallFailed, InvalidRequest
from servo.client.sync import Client
from servo.define.run import AllPartitions, Keys, PartitionChoice
from servo.errors import InvalidValue
from servo.local.deployed import Deployed
from servo.local.plan import PlannedTask, plan
from servo.manifest import canonical
from servo.manifest.check import Checked, check
from servo.manifest.unserved import warnings
from servo.model.partition_key import PartitionKey
from servo.model.partition_value import kind_of, plain_text
from servo.model.partitioning import Moment
from servo.model.plan import PlanResources, PlanTask, fingerprint
from servo.v1 import manifest_pb2, partition_pb2, plan_pb2, planner_pb2, run_spec_pb2

from ..mesh import TENANT, Mesh
from .random_keys import dimensions, spoiled
from .random_manifests import ARTIFACT, manifest

pytestmark = pytest.mark.mesh

SEEDS = range(1_000 if os.environ.get("SERVO_FULL") else 60)
WORKSPACE = "agree"


def test_planner_agrees_on_manifests_and_plans(mesh: Mesh) -> None:
    planned = refused = unplannable = 0
    with mesh.client(WORKSPACE) as client:
        client.upload(ARTIFACT, "SOURCE_ARCHIVE")
        for seed in SEEDS:
            given = manifest(seed)
            canonical.normalise(given)
            checked, faults = check(given)
            try:
                answer = client.deploy(given)
            except InvalidRequest as error:
                reported = [(each.field.removeprefix("manifest."), each.description) for each in error.violations]
                assert _comparable(reported) == _comparable(faults), f"seed {seed}"
                refused += 1
                continue
            assert faults == [], f"seed {seed}"
            assert checked is not None
            assert answer.deployment.manifest_digest == canonical.digest(given), f"seed {seed}"
            assert list(answer.warnings) == warnings(given), f"seed {seed}"
            both = _plan(client, checked, seed)
            planned, unplannable = planned + both, unplannable + (not both)
    # A one-sided sample would prove little.
    assert min(planned, refused) > len(SEEDS) // 10, (planned, refused, unplannable)


def test_planner_agrees_on_partition_keys(mesh: Mesh) -> None:
    """Keys as Python writes them, and with a fault: the same task, or the same message."""
    refused = 0
    with mesh.client(WORKSPACE) as client:
        for seed in SEEDS:
            random = Random(seed)
            key = PartitionKey(dimensions(random))
            checked = _deployed_by(client, key)
            tasks = _plan_one(client, checked, _keys(str(key)), f"seed {seed}, {key}") or []
            assert [str(task.key) for task in tasks] == [f"n/keyed[{key}]:materialize"]
            wrong = spoiled(str(key), random)
            refused += _plan_one(client, checked, _keys(wrong), f"seed {seed}, {wrong}") is None
    assert refused > len(SEEDS) // 2


def _deployed_by(client: Client, key: PartitionKey) -> Checked:
    """One asset that has this partition and another value."""
    asset = manifest_pb2.AssetDefinition(key="n/keyed")
    asset.code.handler.name = "noop"
    for name, value in key.dimensions:
        fixed = partition_pb2.StaticValues(type=f"VALUE_TYPE_{kind_of(value).name}", values=[plain_text(value)])
        asset.partitions.dimensions.add(name=name, fixed=fixed)
    given = manifest_pb2.Manifest(format=1, assets=[asset])
    canonical.normalise(given)
    checked, faults = check(given)
    assert (faults, checked is None) == ([], False)
    assert client.deploy(given).deployment.manifest_digest == canonical.digest(given)
    assert checked is not None
    return checked


def _keys(key: str) -> tuple[partition_pb2.PartitionSelection, PartitionChoice]:
    return partition_pb2.PartitionSelection(keys=partition_pb2.PartitionKeys(keys=[key])), Keys((key,))


def _plan(client: Client, checked: Checked, seed: int) -> bool:
    """Plans everything, then one partition with its upstream and downstream assets."""
    assets = zip(checked.partitionings, checked.manifest.assets, strict=True)
    if not any(partitioning is not None for partitioning, asset in assets if not asset.source):
        return _plan_one(client, checked, None, f"seed {seed}") is not None
    every = partition_pb2.PartitionSelection(all=True)
    tasks = _plan_one(client, checked, (every, AllPartitions()), f"seed {seed}")
    keys = [str(task.key.partition) for task in tasks or () if task.key.partition]
    if keys:
        key = Random(seed).choice(keys)
        _plan_one(client, checked, _keys(key), f"seed {seed}, {key}")
    return tasks is not None


def _plan_one(
    client: Client,
    checked: Checked,
    partitions: tuple[partition_pb2.PartitionSelection, PartitionChoice] | None,
    which: str,
) -> list[PlannedTask] | None:
    """``None`` if there is no plan; both must agree on that, or make the same plan."""
    selection, choice = partitions or (None, None)
    spec = run_spec_pb2.RunSpec(selection=["*"], partitions=selection)
    request = planner_pb2.PlanRunRequest(tenant=TENANT, workspace=WORKSPACE, spec=spec, max_tasks=10_000)
    ours = _planned(checked, choice)
    if isinstance(ours, InvalidValue):
        with pytest.raises(CallFailed) as raised:
            client.planner.PlanRun(request)
        # Which of several invalid tasks is reported may differ.
        if len(checked.manifest.assets) == 1:
            assert str(ours) in [each.description for each in raised.value.violations], which
        return None
    theirs = client.planner.PlanRun(request).plan
    assert [_theirs(task) for task in theirs.tasks] == [_ours(task) for task in ours], which
    assert theirs.fingerprint == _fingerprint(checked.manifest, ours), which
    return ours


def _planned(checked: Checked, choice: PartitionChoice | None) -> list[PlannedTask] | InvalidValue:
    try:
        return plan(Deployed.of(checked), ["*"], choice, Moment(int(datetime.now(UTC).timestamp())))
    except InvalidValue as refused:
        return refused


def _theirs(task: plan_pb2.PlannedTask) -> tuple[object, ...]:
    inputs = [(each.asset_key, each.parameter, list(each.partition_keys)) for each in task.inputs]
    over = task.mapped_over if task.HasField("mapped_over") else None
    return task.task_key, task.partition_key, list(task.upstream), inputs, over


def _ours(task: PlannedTask) -> tuple[object, ...]:
    inputs = [(each.asset_key, each.parameter, [str(key) for key in each.partitions or ()]) for each in task.inputs]
    return str(task.key), str(task.key.partition or ""), list(task.upstream), inputs, task.mapped_over


def _fingerprint(given: manifest_pb2.Manifest, tasks: list[PlannedTask]) -> str:
    def of(task: PlannedTask) -> PlanTask:
        asset = given.assets[task.asset]
        timeout = asset.timeouts.execution.seconds * 1000 if asset.timeouts.HasField("execution") else 3_600_000
        resources = PlanResources(asset.resources.cpu_millicores, asset.resources.memory_bytes, timeout)
        upstream = tuple(str(tasks[place].key) for place in task.upstream)
        return PlanTask(str(task.key), upstream, asset.priority, resources)

    return fingerprint(TENANT, WORKSPACE, [of(task) for task in tasks])


def _comparable(faults: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """In any order, and without the texts of the two JSON parsers."""
    return sorted((path, sentence.partition("is no JSON")[0] or "is no JSON") for path, sentence in faults)
