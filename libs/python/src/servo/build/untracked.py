"""Detects definitions that a worker could not import by name."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from servo.define.asset import Asset
from servo.define.location import Location
from servo.manifest.faults import Fault
from servo.manifest.project import KINDS

from .imports import module_name

_DECORATORS = frozenset({"asset", "multi_asset", "check", "schedule", "sensor"})


def untracked(recorded: Sequence[object], modules: Iterable[ModuleType]) -> list[Fault]:
    """A fault for every definition that is not a module-level name."""
    kept = {id(value) for module in modules for value in list(vars(module).values()) if isinstance(value, KINDS)}
    return [_fault(each) for each in recorded if id(each) not in kept]


def unimportable(source: Path, files: Sequence[Path]) -> list[Fault]:
    """A fault for every definition in a file whose name is not importable; scripts without definitions are ignored."""
    named = [file for file in files if file.suffix == ".py" and module_name(source, file) is None]
    return [
        Fault(
            "modules",
            "is in a file that cannot be imported; name the file and its folders with letters, digits and _",
            name,
            Location(str(file), line),
        )
        for file in named
        for name, line in _defined(file)
    ]


def _fault(definition: Any) -> Fault:
    subject = str(definition.key) if isinstance(definition, Asset) else _name(definition)
    sentence = (
        "it has no module-level name, by which a worker would import it; give it one, "
        "globals()[name] = … where a loop makes several"
    )
    return Fault("modules", sentence, subject, definition.location)


def _name(definition: Any) -> str:
    return str(getattr(definition, "name", None) or definition.check.name)


def _defined(file: Path) -> Iterator[tuple[str, int]]:
    text = file.read_bytes()
    if b"servo" not in text:
        return
    try:
        tree = ast.parse(text)
    # A script may be written for another version of Python.
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(_called(each) in _DECORATORS for each in node.decorator_list):
            yield node.name, node.lineno


def _called(decorator: ast.expr) -> str:
    """``asset`` of ``@asset``, ``@asset(…)`` and ``@servo.asset(…)``."""
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    return named.attr if isinstance(named, ast.Attribute) else named.id if isinstance(named, ast.Name) else ""
