"""Definitions that are accepted and have no effect yet, because no service evaluates them.

The same sentences as in services/planner/src/core/check/unserved.rs, so that ``servo build`` needs no server.
"""

from __future__ import annotations

from servo.v1 import manifest_pb2, planner_pb2

_NO_RUN = "are not served yet, so none of them starts a run; start runs with `servo run`"
_NEVER_OLD = "are not served yet, so data never counts as too old; watch its age elsewhere"


def warnings(manifest: manifest_pb2.Manifest) -> list[planner_pb2.ManifestFault]:
    """One warning for each kind of definition, at the first one."""
    automation, freshness = _of_assets(manifest, "automation"), _of_assets(manifest, "freshness")
    kinds = [
        (_listed("schedules", len(manifest.schedules)), "schedule", "schedules", _NO_RUN),
        (_listed("sensors", len(manifest.sensors)), "sensor", "sensors", _NO_RUN),
        (automation, "automation condition", "automation conditions", _NO_RUN),
        (freshness, "freshness policy", "freshness policies", _NEVER_OLD),
    ]
    return [_warning(fields, one, several, effect) for fields, one, several, effect in kinds if fields]


def _listed(field: str, count: int) -> list[str]:
    return [f"{field}[{index}]" for index in range(count)]


def _of_assets(manifest: manifest_pb2.Manifest, field: str) -> list[str]:
    return [f"assets[{index}].{field}" for index, asset in enumerate(manifest.assets) if asset.HasField(field)]


def _warning(fields: list[str], one: str, several: str, effect: str) -> planner_pb2.ManifestFault:
    kind = one if len(fields) == 1 else several
    return planner_pb2.ManifestFault(field=fields[0], description=f"{len(fields)} {kind}: {several} {effect}")
