"""The imports of a module, read from its source without executing it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .files import name_of


class Import(NamedTuple):
    # Absolute, also for relative imports.
    name: str
    line: int


def module_name(source: Path, file: Path) -> str | None:
    """The module's dotted name, or None if the file's name is not importable."""
    name = name_of(source, file)
    parts = name.removesuffix(".py").removesuffix("/__init__").split("/")
    return ".".join(parts) if all(part.isidentifier() for part in parts) else None


def imports(source: Path, file: Path) -> Iterator[Import]:
    """For ``from a import b`` yields both ``a`` and ``a.b``, because b may be a module. Raises
    SyntaxError or ValueError.
    """
    package = name_of(source, file.parent).split("/") if file.parent != source else []
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (Import(each.name, node.lineno) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = [*above, *([node.module] if node.module else [])]
            yield Import(".".join(base), node.lineno)
            yield from (Import(".".join([*base, each.name]), node.lineno) for each in node.names)
