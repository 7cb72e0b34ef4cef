"""The parts of a manifest other than its assets."""

from __future__ import annotations

from servo.model import selection
from servo.model.selection import NoSelection
from servo.v1 import code_pb2, manifest_pb2, run_spec_pb2

from . import assets, values
from .context import Faults, Names

_DEFINITIONS_MAX = 10_000
_LABELS_MAX = 32


def check(manifest: manifest_pb2.Manifest, names: Names, faults: Faults) -> None:
    values.short(faults, "code_version", manifest.code_version, values.NAME_BYTES_MAX)
    if len(manifest.labels) > _LABELS_MAX:
        faults.add("labels", f"has {len(manifest.labels)} entries; at most {_LABELS_MAX} are allowed")
    for key, value in sorted(manifest.labels.items()):
        values.name(faults, "labels", key)
        values.short(faults, "labels", value, values.NAME_BYTES_MAX)
    if manifest.HasField("artifact"):
        values.digest(faults, "artifact.digest", manifest.artifact.digest)
        _check_artifact_kind(manifest.artifact.kind, faults)
    for field in ("schedules", "sensors"):
        count = len(getattr(manifest, field))
        if count > _DEFINITIONS_MAX:
            faults.add(field, f"has {count} entries; at most {_DEFINITIONS_MAX} are allowed")
            return
    _check_schedules(manifest, names, faults)
    _check_sensors(manifest, names, faults)


def _check_artifact_kind(kind: code_pb2.ArtifactKind, faults: Faults) -> None:
    if kind == code_pb2.ARTIFACT_KIND_CONTAINER_IMAGE:
        refusal = "is CONTAINER_IMAGE; containers are not served yet, so deploy a SOURCE_ARCHIVE"
        faults.add("artifact.kind", refusal)
    elif kind != code_pb2.ARTIFACT_KIND_SOURCE_ARCHIVE:
        faults.add("artifact.kind", "is missing; write SOURCE_ARCHIVE")


def _check_schedules(manifest: manifest_pb2.Manifest, names: Names, faults: Faults) -> None:
    seen: set[str] = set()
    for index, schedule in enumerate(manifest.schedules):
        at = f"schedules[{index}]"
        _check_name(faults, at, schedule.name, seen)
        values.cron(faults, f"{at}.cron", schedule.cron)
        values.zone(faults, f"{at}.time_zone", schedule.time_zone)
        values.listed(faults, f"{at}.gap", schedule)
        values.listed(faults, f"{at}.overlap", schedule)
        values.duration(faults, f"{at}.catch_up_window", schedule, zero_is_fine=True)
        if schedule.HasField("run"):
            _check_run(faults, f"{at}.run", schedule.run, names)
        else:
            faults.add(f"{at}.run", "is missing; say what a tick runs")


def _check_sensors(manifest: manifest_pb2.Manifest, names: Names, faults: Faults) -> None:
    seen: set[str] = set()
    for index, sensor in enumerate(manifest.sensors):
        at = f"sensors[{index}]"
        _check_name(faults, at, sensor.name, seen)
        match sensor.WhichOneof("source"):
            case None:
                faults.add(at, "has no source; say what it watches")
            case "poll":
                values.duration(faults, f"{at}.poll.interval", sensor.poll)
                values.duration(faults, f"{at}.poll.timeout", sensor.poll)
                if sensor.poll.HasField("code"):
                    assets.check_code_ref(faults, f"{at}.poll.code", sensor.poll.code, manifest)
                else:
                    faults.add(f"{at}.poll.code", "is missing; say how it is polled")
        if sensor.HasField("run"):
            _check_run(faults, f"{at}.run", sensor.run, names)


def _check_name(faults: Faults, at: str, name: str, seen: set[str]) -> None:
    values.name(faults, f"{at}.name", name)
    if name in seen:
        faults.add(f"{at}.name", "appears twice in the manifest; keep one")
    seen.add(name)


def _check_run(faults: Faults, at: str, run: run_spec_pb2.RunSpec, names: Names) -> None:
    """Assets that a selection names must exist."""
    values.config(faults, f"{at}.config_json", run.config_json)
    try:
        terms = selection.parse(run.selection)
    except NoSelection as fault:
        faults.add(f"{at}.selection[{fault.index}]", str(fault))
        return
    for index, term in enumerate(terms):
        if term.asset and term.asset not in names:
            offer = faults.offer(term.asset, names)
            faults.add(f"{at}.selection[{index}]", f"there is no asset `{term.asset}` in the manifest{offer}")
