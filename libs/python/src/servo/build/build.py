"""``servo build``: scans, checks and packages a project. Reports all faults at once and writes
nothing if there is one.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from servo.define.registry import recording
from servo.errors import InvalidValue
from servo.manifest import canonical
from servo.manifest.faults import Fault, ManifestInvalid
from servo.manifest.make import make
from servo.manifest.project import Project
from servo.manifest.unserved import warnings
from servo.v1 import code_pb2, manifest_pb2, planner_pb2

from .archive import archive
from .files import name_of, packaged
from .requirements import lock
from .scan import import_all, importing, module_names
from .settings import ProjectSettings
from .unpackaged import Before, imported, unpackaged
from .untracked import unimportable, untracked

# The name of the locked requirements in the archive, where a worker looks for them.
REQUIREMENTS_NAME = "requirements.lock"


@dataclass(frozen=True, slots=True)
class Built:
    manifest: manifest_pb2.Manifest
    # src.zip, including the locked requirements.
    archive: bytes
    requirements: bytes

    @property
    def manifest_digest(self) -> str:
        return canonical.digest(self.manifest)

    @property
    def archive_digest(self) -> str:
        return self.manifest.artifact.digest

    @property
    def requirements_digest(self) -> str:
        return self.manifest.artifact.requirements_digest

    @property
    def warnings(self) -> list[planner_pb2.ManifestFault]:
        """Definitions that have no effect yet."""
        return warnings(self.manifest)

    def write(self, folder: Path) -> None:
        """Writes each file under its digest; ``build.json`` names the newest ones and is written last."""
        folder.mkdir(parents=True, exist_ok=True)
        files = {
            f"{self.manifest_digest}.json": canonical.text(self.manifest).encode(),
            f"{self.archive_digest}.zip": self.archive,
            f"{self.requirements_digest}.txt": self.requirements,
        }
        for name, content in files.items():
            _replace(folder / name, content)
        _replace(folder / "build.json", json.dumps(self.summary(), indent=2).encode() + b"\n")

    def summary(self) -> dict[str, str | int | list[dict[str, str]]]:
        return {
            "manifest": self.manifest_digest,
            "archive": self.archive_digest,
            "archive_bytes": len(self.archive),
            "requirements": self.requirements_digest,
            "assets": len(self.manifest.assets),
            "schedules": len(self.manifest.schedules),
            "sensors": len(self.manifest.sensors),
            "warnings": [{"field": each.field, "description": each.description} for each in self.warnings],
        }


def build(folder: Path, *, code_version: str = "") -> Built:
    """Raises :class:`ManifestInvalid` with every fault of the project, by file and line."""
    folder = folder.resolve()
    settings = ProjectSettings.read(folder)
    source = settings.source_folder(folder)
    if not source.is_dir():
        raise InvalidValue(f"there is no folder {source}; name the one with your code in project.source of servo.toml")
    with _reading():
        files = packaged(source, settings.exclude)
        requirements, faults = lock(folder / settings.requirements)
        contents = {name_of(source, file): file.read_bytes() for file in files}
    faults += unimportable(source, files)
    zipped = archive({**contents, REQUIREMENTS_NAME: requirements.encode()})
    artifact = code_pb2.CodeArtifact(
        digest=hashlib.sha256(zipped).hexdigest(),
        kind="ARTIFACT_KIND_SOURCE_ARCHIVE",
        requirements_digest=hashlib.sha256(requirements.encode()).hexdigest(),
    )
    with importing(source):
        before = Before.now()
        with recording() as recorded:
            modules, broken = import_all(source, settings.modules or module_names(source, files))
        own = [sys.modules[name] for name, _ in imported(source, before)]
        # Definitions of a module that failed to import have no name yet, so they cannot be judged.
        faults += [
            *(broken or untracked(recorded, [*modules, *own])),
            *unpackaged(source, files, settings.exclude, before),
        ]
        chosen = modules if settings.modules else [*modules, *own]
        manifest = _manifest(Project.of_modules(chosen), artifact, code_version, faults)
    return Built(manifest, zipped, requirements.encode())


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidValue(f"{error.filename} cannot be read: {error.strerror}") from error


def _manifest(
    project: Project, artifact: code_pb2.CodeArtifact, code_version: str, faults: list[Fault]
) -> manifest_pb2.Manifest:
    if not faults and not project.assets:
        raise InvalidValue(
            "there is no asset in this project; write a function with @asset, or name its module in servo.toml"
        )
    try:
        manifest = make(project, artifact=artifact, code_version=code_version).manifest
    except ManifestInvalid as invalid:
        raise ManifestInvalid([*faults, *invalid.faults]) from None
    if faults:
        raise ManifestInvalid(faults)
    return manifest


def _replace(path: Path, content: bytes) -> None:
    """Writes the file atomically."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_bytes(content)
    partial.replace(path)
