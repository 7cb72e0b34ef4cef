"""``servo.toml``, the settings of a project. Every setting and the file itself are optional."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from servo.errors import InvalidValue
from servo.model.suggestions import did_you_mean

FILE = "servo.toml"


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    # The folder that is packaged and put on the import path; by default "src" if it exists, else
    # the project folder.
    source: str = ""
    # Modules with definitions; empty means every module whose source mentions servo.
    modules: tuple[str, ...] = ()
    requirements: str = "requirements.txt"
    # Patterns of files to leave out, in addition to hidden files, caches and tests.
    exclude: tuple[str, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> ProjectSettings:
        file = folder / FILE
        if not file.exists():
            return cls()
        try:
            given = tomllib.loads(file.read_bytes().decode())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            raise InvalidValue(f"{FILE}: {error}") from None
        for name, table in given.items():
            if name != "project" or not isinstance(table, dict):
                raise InvalidValue(f"{FILE}: `{name}` is not known here; write a table [project]")
        return cls(**_checked(given.get("project", {})))

    def source_folder(self, folder: Path) -> Path:
        if self.source:
            return folder / self.source
        return folder / "src" if (folder / "src").is_dir() else folder


def _checked(given: dict[str, Any]) -> dict[str, Any]:
    known = {field.name: field.type for field in fields(ProjectSettings)}
    for name, value in given.items():
        if name not in known:
            raise InvalidValue(f"{FILE}: project.{name} is not known{did_you_mean(name, known)}")
        is_list = isinstance(value, list) and all(isinstance(each, str) for each in value)
        if "tuple" in str(known[name]) and not is_list:
            raise InvalidValue(f"{FILE}: project.{name} is a list of texts")
        if "tuple" not in str(known[name]) and not isinstance(value, str):
            raise InvalidValue(f"{FILE}: project.{name} is a text")
    return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
