"""What a module imports, as its text says."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .files import name_of


class Import(NamedTuple):
    # Whole, also where the text says it relative to its package.
    name: str
    line: int


def module_name(source: Path, file: Path) -> str | None:
    """None for files whose names no import can say."""
    name = name_of(source, file)
    parts = name.removesuffix(".py").removesuffix("/__init__").split("/")
    return ".".join(parts) if all(part.isidentifier() for part in parts) else None


def imports(source: Path, file: Path) -> Iterator[Import]:
    """Of ``from a import b`` both ``a`` and ``a.b``, which may be a module. Raises SyntaxError or ValueError."""
    package = name_of(source, file.parent).split("/") if file.parent != source else []
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (Import(each.name, node.lineno) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = [*above, *([node.module] if node.module else [])]
            yield Import(".".join(base), node.lineno)
            yield from (Import(".".join([*base, each.name]), node.lineno) for each in node.names)
