"""Finds and imports the modules of a project that hold definitions."""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from servo.define.location import Location
from servo.manifest.faults import Fault

from .files import name_of

_MENTIONS = re.compile(rb"^\s*(from|import)\s+servo\b", re.MULTILINE)


def module_names(source: Path, files: Sequence[Path]) -> list[str]:
    """The modules whose text imports servo; scripts whose names no import can say are left alone."""
    names = [_module_name(name_of(source, file)) for file in files if _mentions_servo(file)]
    return sorted(name for name in names if name is not None)


def import_all(source: Path, names: Sequence[str]) -> tuple[list[ModuleType], list[Fault]]:
    """Every module that can be imported, and why the others cannot."""
    modules: list[ModuleType] = []
    faults: list[Fault] = []
    with _on_path(source):
        for name in names:
            try:
                modules.append(importlib.import_module(name))
            except Exception as error:
                faults.append(_fault(name, source, error))
    return modules, faults


def _mentions_servo(file: Path) -> bool:
    return file.suffix == ".py" and _MENTIONS.search(file.read_bytes()) is not None


def _module_name(name: str) -> str | None:
    parts = name.removesuffix(".py").removesuffix("/__init__").split("/")
    return ".".join(parts) if all(part.isidentifier() for part in parts) else None


def _fault(name: str, source: Path, error: Exception) -> Fault:
    sentence = f"cannot be imported: {type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) and error.filename:
        return Fault("modules", sentence, name, Location(error.filename, error.lineno or 1))
    frames = [Location(frame.filename, frame.lineno or 1) for frame in traceback.extract_tb(error.__traceback__)]
    own = [frame for frame in frames if Path(frame.file).is_relative_to(source)]
    return Fault("modules", sentence, name, own[-1] if own else None)


@contextmanager
def _on_path(source: Path) -> Iterator[None]:
    """As a worker has it: the sources first."""
    sys.path.insert(0, str(source))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(source))
