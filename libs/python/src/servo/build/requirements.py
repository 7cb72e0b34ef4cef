"""Locked requirements: every package with its exact version, sorted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from servo.define.location import Location
from servo.manifest.faults import Fault

_PINNED = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?P<extras>\[[A-Za-z0-9._, -]+\])?\s*==\s*(?P<version>[A-Za-z0-9.!+_-]+)"
    r"\s*(?P<marker>;[^#]*?)?(?P<hashes>(\s+--hash=[a-z0-9]+:[a-fA-F0-9]+)*)"
)
_REMEDY = "write name==version; `pip freeze` and `uv pip compile` give such lists"


def lock(file: Path) -> tuple[str, list[Fault]]:
    """The locked text, empty if there is no file, and the faults of lines that are not locked."""
    if not file.exists():
        return "", []
    locked: dict[str, str] = {}
    faults: list[Fault] = []
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return "", [Fault("requirements", f"is not UTF-8 text ({error}); save it as such", file.name)]
    for number, line in _lines(text):
        found = _PINNED.fullmatch(line)
        location = Location(str(file), number)
        if found is None:
            faults.append(Fault("requirements", f"is not locked: {_REMEDY}", line, location))
            continue
        # Normalizes the name as package indexes do.
        name = re.sub(r"[-_.]+", "-", found["name"]).lower()
        text = " ".join(line.split())
        if locked.setdefault(f"{name}{found['marker'] or ''}", text) != text:
            faults.append(Fault("requirements", "appears twice with different text; keep one", line, location))
    return "".join(f"{locked[key]}\n" for key in sorted(locked)), faults


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yields lines without comments and blanks, joined where a line ends with a backslash."""
    whole, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        start = start if whole else number
        bare = re.sub(r"(^|\s)#.*", "", line).strip()
        if bare.endswith("\\"):
            whole += f"{bare[:-1]} "
            continue
        whole = f"{whole}{bare}".strip()
        if whole:
            yield start, whole
        whole = ""
    if whole:
        yield start, whole.strip()
