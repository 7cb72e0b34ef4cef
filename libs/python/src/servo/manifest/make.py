"""Builds the manifest of a project, or reports all of its faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from servo.define.asset import Asset, Source
from servo.define.checks import Check
from servo.define.location import Location
from servo.errors import InvalidValue
from servo.execute.quality import CannotCheck, prepare_pre
from servo.execute.task_checks import attached, checks_of
from servo.model.suggestions import did_you_mean
from servo.v1 import code_pb2, manifest_pb2

from . import assets, automation, canonical, sources
from .check import Checked, check
from .entry_points import EntryPoints
from .faults import Fault, ManifestInvalid
from .inputs import Names, inputs
from .project import Project

_FORMAT = 1


class BuiltManifest(NamedTuple):
    manifest: manifest_pb2.Manifest
    checked: Checked


class _Subject(NamedTuple):
    name: str
    location: Location


def make(
    project: Project,
    *,
    artifact: code_pb2.CodeArtifact | None = None,
    code_version: str = "",
    labels: Mapping[str, str] | None = None,
    importable: bool = True,
) -> BuiltManifest:
    """Raises :class:`ManifestInvalid` with every fault at once."""
    writer = _Writer(project, EntryPoints(importable=importable, places=project.places))
    manifest = manifest_pb2.Manifest(format=_FORMAT, code_version=code_version, labels=labels or {}, artifact=artifact)
    manifest.assets.extend(writer.assets())
    manifest.schedules.extend(writer.schedules())
    manifest.sensors.extend(writer.sensors())
    canonical.normalise(manifest)
    checked, found = check(manifest)
    reported = [(path, sentence) for path, sentence in found if not writer.is_consequence(path, sentence)]
    faults = [*writer.faults, *(writer.located(manifest, path, sentence) for path, sentence in reported)]
    if faults or checked is None:
        raise ManifestInvalid(faults)
    return BuiltManifest(manifest, checked)


@dataclass(slots=True)
class _Writer:
    project: Project
    entry_points: EntryPoints
    faults: list[Fault] = field(default_factory=list)
    # The definitions in the manifest, by list and key.
    subjects: dict[tuple[str, str], _Subject] = field(default_factory=dict)

    def assets(self) -> Iterator[manifest_pb2.AssetDefinition]:
        keys = [output.key for asset in self.project.assets for output in asset.outputs]
        names = Names([*keys, *(source.key for source in self.project.sources)])
        checks = self._checks()
        for asset in self.project.assets:
            # Evaluates every output, so that each duplicate key is reported.
            new = [self._is_new(str(output.key), asset.location) for output in asset.outputs]
            if all(new):
                yield from self._asset(asset, names, checks)
        for source in self.project.sources:
            if self._is_new(str(source.key), source.location):
                with self._collecting_faults(str(source.key), source.location):
                    yield assets.source(source)

    def schedules(self) -> Iterator[Any]:
        for schedule in self.project.schedules:
            yield from self._named("schedules", schedule, automation.schedule)

    def sensors(self) -> Iterator[Any]:
        for sensor in self.project.sensors:
            yield from self._named("sensors", sensor, lambda given: automation.sensor(given, self.entry_points))

    def is_consequence(self, path: str, sentence: str) -> bool:
        """Whether it reports something as missing that exists but has faults of its own."""
        broken = {fault.subject for fault in self.faults}
        return path.endswith((".upstream", ".made_by")) and any(f"`{key}`" in sentence for key in broken)

    def located(self, manifest: manifest_pb2.Manifest, path: str, sentence: str) -> Fault:
        """A fault of the manifest, with the definition that it comes from."""
        heading, bracket, rest = path.partition("[")
        if not bracket or heading not in ("assets", "schedules", "sensors"):
            return Fault(path, sentence)
        entry = getattr(manifest, heading)[int(rest.partition("]")[0])]
        key = entry.key if heading == "assets" else entry.name
        subject = self.subjects.get((heading, key))
        return Fault(path, sentence, key, subject.location if subject else None)

    def _asset(self, asset: Asset[..., Any], names: Names, checks: Mapping[str, list[Check]]) -> Iterator[Any]:
        with self._collecting_faults(str(asset.key), asset.location):
            every = checks_of(asset, checks)
            read = inputs(asset, names)
            for each in every:
                prepare_pre(each, [parameter for parameter, _, _ in read if parameter])
            if self.entry_points.importable:
                sources.check(asset, read, self._sources, self.entry_points)
            yield assets.maker(asset, read, every, self.entry_points)
        for output in asset.outputs[1:]:
            with self._collecting_faults(str(output.key), asset.location):
                yield assets.further_output(asset, output, self.entry_points)

    @property
    def _sources(self) -> dict[str, Source]:
        return {str(source.key): source for source in self.project.sources}

    def _checks(self) -> dict[str, list[Check]]:
        keys = {str(output.key) for asset in self.project.assets for output in asset.outputs}
        for function in self.project.checks:
            for target in function.targets:
                if target not in keys:
                    sentence = f"there is no asset `{target}` to check{did_you_mean(target, keys)}"
                    self.faults.append(Fault("checks", sentence, function.check.name, function.location))
        return attached(self.project.checks)

    def _is_new(self, key: str, location: Location) -> bool:
        first = self.subjects.get(("assets", key))
        if first is not None:
            self.faults.append(Fault("assets", f"is defined at {first.location} already; keep one", key, location))
            return False
        self.subjects["assets", key] = _Subject(key, location)
        return True

    def _named(self, heading: str, definition: Any, write: Callable[[Any], Any]) -> Iterator[Any]:
        subject = _Subject(definition.name, definition.location)
        self.subjects.setdefault((heading, definition.name), subject)
        with self._collecting_faults(subject.name, subject.location):
            yield write(definition)

    @contextmanager
    def _collecting_faults(self, subject: str, location: Location) -> Iterator[None]:
        """Turns an exception of a definition into a fault, so that the rest of the project is checked as well."""
        try:
            yield
        except (InvalidValue, CannotCheck) as fault:
            self.faults.append(Fault("", str(fault), subject, location))
        # Users can pass anything, so any exception is possible.
        except Exception as error:
            reported = f"{type(error).__name__}: {error}"
            sentence = f"cannot be written down ({reported}); look for an argument of a kind that does not belong there"
            self.faults.append(Fault("", sentence, subject, location))
