"""Inputs and outputs of a job, in the child."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from servo.data.commit import OutputIdentity, commit, row_count
from servo.data.folders import open_folder
from servo.data.formats import custom
from servo.data.inputs import Reader, ResolvedInput, Shape, Version, is_item
from servo.define.asset import Asset, Source
from servo.define.checks import Check, RowCount
from servo.define.dependencies import In
from servo.define.io import is_custom
from servo.execute.annotations import wanted_frame
from servo.execute.attempt import AttemptState
from servo.execute.errors import InputMissing
from servo.execute.quality import Gating, Read
from servo.manifest.inputs import declared
from servo.manifest.sources import upstream
from servo.model.partition_key import PartitionKey

Job = dict[str, Any]


def parameters(job: Job) -> list[str]:
    """The parameters of the function. Inputs without one only define an order."""
    return [each["parameter"] for each in job["inputs"] if each["parameter"]]


def previous_rows(job: Job, checks: Iterable[Check]) -> int | None:
    """The row count of the previous version, if a check compares with it. None without a version,
    or if it has no rows.
    """
    compare = any(isinstance(each.spec, RowCount) and each.spec.share_of_previous_ppm is not None for each in checks)
    return row_count(job["previous"]) if compare and job["previous"] else None


def read_inputs(asset: Asset[..., Any], job: Job) -> tuple[dict[str, Read], int]:
    """The inputs by parameter, and the bytes read."""
    given, _ = declared(asset)
    reader = Reader()
    inputs: dict[str, Read] = {}
    for each in job["inputs"]:
        parameter = each["parameter"]
        declared_input = given.get(parameter) or In(each["asset_key"])
        if declared_input.each and job["item_json"]:
            inputs[parameter] = Read(json.loads(job["item_json"]))
        elif parameter:
            versions = [Version(*version) for version in each["versions"]]
            shape = Shape(each["shape"])
            resolved = ResolvedInput(each["asset_key"], parameter, versions, mapped=each["mapped"], shape=shape)
            read = upstream(job["module"], declared_input, resolved.asset_key)
            _refuse_partial_mapped_input(read, resolved)
            inputs[parameter] = reader.read(
                resolved, declared_input, wanted_frame(asset.function, parameter), _load(read)
            )
    return inputs, reader.read_bytes


def write_outputs(asset: Asset[..., Any], attempted: AttemptState, job: Job) -> list[dict[str, Any]]:
    """Commits the outputs that can be promoted or quarantined. ``None`` means no output."""
    if attempted.made is None or attempted.gating is Gating.BLOCK:
        return []
    outputs = []
    for number, output in enumerate(asset.outputs):
        value = attempted.made.values[str(output.key)]
        if value is not None:
            folder = open_folder(job["output_uri"])
            # The first output is in the attempt's folder, the others are in folders below it.
            folder = folder if number == 0 else folder.below(output.key.namespace).below(output.key.name)
            about = OutputIdentity(job["run_id"], job["attempt_id"], str(output.key), job["partition"])
            outputs.append(commit(folder, value, output.io or asset.settings.io, about, job["inputs"]))
    return outputs


def _load(read: Asset[..., Any] | Source | None) -> Callable[[PartitionKey | None], Any] | None:
    """The loader of a source."""
    if not isinstance(read, Source) or not is_custom(read.io):
        return None
    load: Callable[[PartitionKey | None], Any] = custom(read.io, "load").load
    return load


def _refuse_partial_mapped_input(read: Asset[..., Any] | Source | None, resolved: ResolvedInput) -> None:
    """A mapped asset consists of all its items' values; a server that names only the last version
    would pass a part of them.
    """
    made = [version for version in resolved.versions if version.materialization_id]
    if resolved.mapped or not isinstance(read, Asset) or all(is_item(version) for version in made):
        return
    if any(each.each for each in declared(read)[0].values()):
        raise InputMissing(
            f"`{resolved.asset_key}` is made once per item, and this server does not name the versions of all items; "
            "give the parameter another input, or let each item write where the function finds it"
        )
