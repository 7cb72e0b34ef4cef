"""Golden vectors that Rust and Python reproduce byte for byte."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from servo.errors import InvalidValue
from servo.model import canonical, ids, plan, presign
from servo.model.asset_key import AssetKey
from servo.model.partition_key import PartitionKey
from servo.model.task_key import Operation, TaskKey

_ALL = json.loads((Path(__file__).resolve().parents[4] / "tests/vectors/vectors.json").read_text())


def vectors(heading: str) -> pytest.MarkDecorator:
    assert _ALL[heading]
    return pytest.mark.parametrize("vector", _ALL[heading])


def value(tag: str, given: Any) -> Any:
    match tag:
        case "d":
            return date.fromisoformat(given)
        case "t":
            return datetime.fromisoformat(given).astimezone(UTC)
        case _:
            return given


def partition(dims: dict[str, list[Any]] | None) -> PartitionKey | None:
    return PartitionKey({name: value(*typed) for name, typed in dims.items()}) if dims else None


@vectors("canonical_json")
def test_canonical_json(vector: Any) -> None:
    assert canonical.canonical(vector["input"]) == vector["expected"]
    spaced = json.dumps(vector["input"], indent=2)
    assert canonical.canonical(canonical.parse(spaced)) == vector["expected"]


@vectors("canonical_json_reject")
def test_canonical_json_reject(vector: str) -> None:
    with pytest.raises(canonical.NotCanonical):
        canonical.parse(vector)


@vectors("partition_key")
def test_partition_key(vector: Any) -> None:
    key = partition(vector["dims"])
    assert str(key) == vector["expected"]
    assert PartitionKey.parse(vector["expected"]) == key


@vectors("partition_key_reject")
def test_partition_key_reject(vector: str) -> None:
    with pytest.raises(InvalidValue):
        PartitionKey.parse(vector)


@vectors("task_id")
def test_task_id(vector: Any) -> None:
    assert TaskKey.parse(vector["task_key"]).id == vector["expected"]


@vectors("task_key")
def test_task_key(vector: Any) -> None:
    asset = AssetKey(vector["namespace"], vector["name"])
    assert asset.display == vector["display"]
    key = TaskKey(asset, partition(vector["partition"]), Operation(vector["operation"]))
    assert str(key) == vector["expected"]
    assert TaskKey.parse(vector["expected"]) == key


@vectors("run_id")
def test_run_id(vector: Any) -> None:
    secret = bytes.fromhex(vector["secret_hex"])
    made = ids.run_id(secret, vector["tenant"], vector["workspace"], vector["run_key"])
    assert ids.check_run_id(made) == vector["expected"]


@vectors("queue_id")
def test_queue_id(vector: Any) -> None:
    assert ids.queue_id(vector["prefix"], vector["internal_id"]) == vector["expected"]


@vectors("plan_fingerprint")
def test_plan_fingerprint(vector: Any) -> None:
    tasks = [
        plan.PlanTask(
            task["task_key"],
            tuple(task["upstream_keys"]),
            task["priority"],
            plan.PlanResources(**task["resources"]),
        )
        for task in vector["tasks"]
    ]
    assert plan.fingerprint(vector["tenant"], vector["workspace"], tasks) == vector["expected"]


@vectors("presigned_path")
def test_presigned_path(vector: Any) -> None:
    key = bytes.fromhex(vector["key_hex"])
    signed = presign.sign(key, vector["method"], vector["path"], vector["expires"], vector["kid"])
    assert signed == vector["expected"]
    read = presign.verify({vector["kid"]: key}, vector["method"], signed, vector["expires"])
    assert (read.path, read.expires, read.verb) == (vector["path"], vector["expires"], "finished")
